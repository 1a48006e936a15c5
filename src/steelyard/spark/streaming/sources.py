"""The sources of a stream: they send rows to workers and count what they send.

Record batches enter; (bin, block, report) rows leave. This runs inside Spark's Python tasks; of
Spark it knows only which micro-batch and which task it is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.aggregators.groups import Groups
from steelyard.control.reports import SourceReport
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.hashing import spread
from steelyard.planning import Planner
from steelyard.spark import packing
from steelyard.spark.packing import Bins, Decide, Destinations

SCHEMA = "bin int, block binary, report string, latest long"

_COLUMNS = ["bin", "block", "report", "latest"]

_FULLEST, _HOT, _LETTERS = 64, 20, 60
"""In so many buckets hot keys are looked for; so many are told, cut to so many letters."""


def micro_batch() -> tuple[str, int, int]:
    """The query, the micro-batch and the task that this runs in."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None or batch is None:
        raise RuntimeError("this runs in the tasks of a streaming query only")
    return query, int(batch), context.partitionId()


@dataclass(frozen=True)
class FirstChoice(Destinations):
    """Every bucket whole, where a plan puts it before anything was counted."""

    bucket: str
    bins: int
    buckets: int
    capacities: Sequence[float] | None

    @property
    def columns(self) -> list[str]:
        return [self.bucket]

    def start(self) -> Decide:
        plan = Planner(self.bins, buckets=self.buckets, capacities=self.capacities).plan

        def decide(rows: pa.RecordBatch) -> Bins:
            buckets = rows.column(self.bucket).to_numpy()
            return plan.route(buckets, np.zeros(buckets.size, np.int64))

        return decide


@dataclass(frozen=True)
class Asked:
    """The newest control version, asked for once in a micro-batch: a row with its number leaves.

    For control paths where tasks cannot pin one. Whoever runs this in a subquery gets the same
    answer in all attempts of all tasks.
    """

    path: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        query, _, _ = micro_batch()
        store = ControlStore(self.path)
        store.claim(query)
        yield pa.record_batch({"number": pa.array([store.latest()], pa.int64())})


@dataclass(frozen=True)
class Controlled(Destinations):
    """By the control version of the micro-batch: virtual workers, then their owners."""

    path: str
    bucket: str
    salt: str | None
    """What tells messages of a key apart; None: their place, which must be the same again."""
    bins: int
    buckets: int
    workers: int
    until_planned: Destinations
    """Chooses virtual workers while there is no plan."""
    scheme: Destinations | None = None
    """Chooses virtual workers always, in the place of plans."""
    asked: str | None = None
    """The column with the version's number; None: the first task pins it."""

    @property
    def columns(self) -> list[str]:
        more = [] if self.scheme is None else self.scheme.columns
        own = [name for name in (self.salt, self.asked) if name is not None]
        return list(dict.fromkeys([self.bucket, *own, *self.until_planned.columns, *more]))

    def start(self) -> Decide:
        store = ControlStore(self.path)
        if self.asked is None:
            query, batch, _ = micro_batch()
            store.claim(query)
            return self.follow(store.pin(query, batch))
        return _FollowAsked(self, store, self.asked)

    def follow(self, version: ControlVersion | None) -> "Following":
        """Decide as a version says, or as well as can be without one."""
        if version is not None and not version.fits(self.bins, self.buckets):
            version = None
        owners = np.arange(self.bins, dtype=np.int64) * self.workers // self.bins
        if version is not None:
            owners = version.owners.astype(np.int64)
        if self.scheme is not None:
            choose = self.scheme.start()
        elif version is not None and version.plan is not None:
            plan, salts = version.plan, self._salts()

            def choose(rows: pa.RecordBatch) -> Bins:
                return plan.route(rows.column(self.bucket).to_numpy(), salts(rows))

        else:
            choose = self.until_planned.start()
        return Following(owners, choose, 0 if version is None else version.number)

    def _salts(self) -> Callable[[pa.RecordBatch], NDArray[np.integer]]:
        if self.salt is not None:
            name = self.salt
            return lambda rows: rows.column(name).to_numpy()
        _, _, source = micro_batch()
        first = source << 40  # sources do not all begin with the same worker

        def by_place(rows: pa.RecordBatch) -> NDArray[np.integer]:
            nonlocal first
            first += rows.num_rows
            return spread(np.arange(first - rows.num_rows, first))

        return by_place


@dataclass(frozen=True)
class Following:
    """Decides as a control version says."""

    owners: NDArray[np.int64]
    choose: Decide
    version: int

    def __call__(self, rows: pa.RecordBatch) -> Bins:
        return self.owners.take(self.choose(rows))


class _FollowAsked:
    """The same, by the version whose number comes with the rows."""

    version = 0

    def __init__(self, controlled: Controlled, store: ControlStore, column: str) -> None:
        self._controlled, self._store, self._column = controlled, store, column
        self._follow: Following | None = None

    def __call__(self, rows: pa.RecordBatch) -> Bins:
        if self._follow is None:
            number = rows.column(self._column)[0].as_py()
            self._follow = self._controlled.follow(self._store.read(number))
            self.version = self._follow.version
        return self._follow(rows)


@dataclass(frozen=True)
class StreamPacker:
    """The source's end of the packed exchange, with a report for the driver beside the blocks."""

    destinations: Destinations
    names: tuple[str, ...]
    """Of the columns, in their order; those of the batches do not count."""
    keys: tuple[str, ...]
    bucket: str
    weight: str | None
    buckets: int
    dropped: tuple[str, ...]
    """Columns that workers do not need."""
    called: int = 0
    """Workers that hear from every task that has rows, so that each knows of the micro-batch."""
    time: str | None = None
    """The column of event times, in microseconds, of which each worker hears the latest."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, batch, source = micro_batch()
        decide = self.destinations.start()
        part, latest = -1, None
        for part, rows in enumerate(packing.gathered(batches)):
            rows = rows.rename_columns(list(self.names))  # noqa: PLW2901
            sent = packing.packed(rows.drop_columns(list(self.dropped)), decide(rows))
            hot = hot_keys(rows, self.keys, rows.column(self.bucket).to_numpy())
            followed = decide.version if isinstance(decide, Following | _FollowAsked) else 0
            report = SourceReport(batch, source, part, self._counts(rows), hot, followed)
            if self.time is not None:
                newest = pc.max(rows.column(self.time)).as_py()
                latest = max((t for t in (latest, newest) if t is not None), default=None)
            yield _with_report(sent, report)
        if part >= 0 and self.called:
            yield _calls(self.called, latest)

    def _counts(self, rows: pa.RecordBatch) -> NDArray[np.float32]:
        buckets = rows.column(self.bucket).to_numpy()
        weights = None
        if self.weight is not None:
            weights = rows.column(self.weight).fill_null(0.0).to_numpy()
            if not (np.isfinite(weights) & (weights >= 0)).all():
                raise ValueError("weight: the column must hold numbers of at least 0")
        return np.bincount(buckets, weights, self.buckets).astype(np.float32)


def hot_keys(
    rows: pa.RecordBatch, keys: tuple[str, ...], buckets: NDArray[np.integer]
) -> tuple[tuple[str, int], ...]:
    """The most frequent keys of some rows, and how often they are there.

    All rows of a key are in one bucket, and only the fullest are looked at: those keys are counted
    exactly, and any other comes at most as often as the next bucket is full.

    >>> pages = pa.record_batch({"page": ["a", "b", "a", "a", "b", "c"]})
    >>> hot_keys(pages, ("page",), np.array([4, 7, 4, 4, 7, 7]))
    (('a', 3), ('b', 2))
    """
    full = np.bincount(buckets)
    if full.size > _FULLEST:
        is_full = np.zeros(full.size, np.bool_)
        is_full[np.argpartition(full, -_FULLEST)[-_FULLEST:]] = True
        rows = rows.select(list(keys)).filter(pa.array(is_full[buckets]))
    columns = rows.select(list(keys)).columns
    try:
        groups = Groups.of(columns)
    except pa.ArrowNotImplementedError:  # keys of a nested type, which only functions can have
        return ()
    sizes, first = groups.sizes(), groups.first_rows()
    top = np.argsort(-sizes, kind="stable")[:_HOT]
    top = top[sizes[top] > 1]
    texts = [_texts(column.take(pa.array(first[top]))) for column in columns]
    return tuple(
        (", ".join(parts)[:_LETTERS], int(sizes[group]))
        for *parts, group in zip(*texts, top.tolist(), strict=True)
    )


def _texts(values: pa.Array) -> list[str]:
    """For people: what Python cannot show is shown as Arrow does, or not at all."""
    try:
        return [str(value) for value in values.to_pylist()]
    except (pa.ArrowException, LookupError, OverflowError, ValueError):
        pass
    try:
        return [str(value) for value in values.cast(pa.string()).to_pylist()]
    except pa.ArrowException:
        return ["?"] * len(values)


def _with_report(sent: pa.RecordBatch, report: SourceReport) -> pa.RecordBatch:
    """The blocks, and the report beside the first."""
    texts = pa.array([report.to_json(), *([None] * (sent.num_rows - 1))], pa.string())
    columns = [*sent.columns, texts, pa.nulls(sent.num_rows, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, _COLUMNS)


def _calls(called: int, latest: int | None) -> pa.RecordBatch:
    """A row without a block for each worker that is called."""
    columns = [
        pa.array(range(called), pa.int32()),
        pa.nulls(called, pa.binary()),
        pa.nulls(called, pa.string()),
        pa.array([latest] * called, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, _COLUMNS)
