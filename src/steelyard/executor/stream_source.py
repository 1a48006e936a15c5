"""The sources of a stream: they send rows to workers and count these rows.

Record batches enter; (bin, block, report) rows leave. This runs inside Spark's Python tasks; of
Spark it knows only the query and the numbers of the micro-batch and of the task.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.aggregators.groups import Groups
from steelyard.control.definition import Definition
from steelyard.control.reports import SourceReport
from steelyard.control.store import ControlStore, Pin
from steelyard.control.version import ControlVersion
from steelyard.executor import packing
from steelyard.executor.packing import Bins, Decide, Destinations
from steelyard.executor.task_context import micro_batch
from steelyard.hashing import spread
from steelyard.plans import Planner
from steelyard.reported_keys import PLAIN, ReportedKeys

SCHEMA = "bin int, block binary, report string, latest long"

_COLUMNS = ["bin", "block", "report", "latest"]

_UNSEEN = -1
"""The number of a pin if the task that chose the version did not see the folder of the driver."""

_FULLEST, _HOT = 64, 20
"""Number of the fullest buckets that are searched for hot keys, and of hot keys reported."""

LETTERS = 60
"""Largest number of characters of a key in reports and errors."""


@dataclass(frozen=True)
class FirstChoice(Destinations):
    """Bins by the first choice of every bucket, as in a plan without counts."""

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
class VersionChoice:
    """The choice of the control version of a micro-batch: one row leaves, with its pin.

    Spark runs this as a subquery once in each micro-batch, and its answer is the same for all
    attempts of all tasks. It never fails, because Spark would hide the reason. If this host does
    not see the folder of the driver, the pin says so, with the address of the host.
    """

    path: str
    identity: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.record_batch({"pin": pa.array([self.pin().to_long()], pa.int64())})

    def pin(self) -> Pin:
        """Return the pin of the newest version, or one with the address of this host."""
        with suppress(OSError, ValueError):  # this host cannot reach the store
            store = ControlStore(self.path)
            if store.is_identified_by(self.identity):
                return store.pin_newest()
        return Pin(_UNSEEN, _own_address())


def _own_address() -> int:
    """Return the IPv4 address of this host; 0 if it has none."""
    try:
        return int(ipaddress.IPv4Address(socket.gethostbyname(socket.gethostname())))
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True)
class Controlled(Destinations):
    """Bins by the control version of the micro-batch: virtual workers, then their owners."""

    path: str
    pin: str
    """The column with the pin of the version, the same in all rows."""
    bucket: str
    salt: str | None
    """The column that distinguishes messages of a key; None: their position in the task.

    A retry must then get the messages in the same order.
    """
    bins: int
    buckets: int
    workers: int
    until_planned: Destinations
    """The choice of virtual workers while there is no plan."""
    definition: Definition
    """The definition of the query; a restart with another one is refused."""
    scheme: Destinations | None = None
    """The choice of virtual workers instead of plans."""

    @property
    def columns(self) -> list[str]:
        more = [] if self.scheme is None else self.scheme.columns
        own = [name for name in (self.pin, self.salt) if name is not None]
        return list(dict.fromkeys([self.bucket, *own, *self.until_planned.columns, *more]))

    def start(self) -> "Following":
        return Following(self)

    def version_of(self, pin: Pin) -> ControlVersion | None:
        """Return the version that a micro-batch follows; fail if this task cannot see it.

        If the host that chose the version does not see the folder, the first micro-batch fails.
        In later micro-batches the folder may have been lost. No version is then followed until the
        driver has written one again.
        """
        store = ControlStore(self.path)
        query, batch, _ = micro_batch()
        if pin.number == _UNSEEN:
            if batch > 0:
                return None
            raise RuntimeError(
                f"control: the folder {store.shown} on the host "
                f"{ipaddress.IPv4Address(pin.checksum)} is not the one that the driver uses; give "
                "a path that the driver and all executors share"
            )
        store.claim(query)
        store.require_same(query, batch, self.definition)
        try:
            version = store.pinned(pin)
        except LookupError as error:
            raise RuntimeError(
                f"control: version {pin.number}, which this micro-batch follows, is not in the "
                f"folder {store.shown} on the host {socket.gethostname()}; all executors must "
                "share the folder that the driver uses; if it was removed, start the query again"
            ) from error
        if version is not None and version.fits(self.bins, self.buckets, self.workers):
            return version
        return None

    def choice(self, version: ControlVersion | None) -> Decide:
        """Return the function that chooses virtual workers, by a version if there is one."""
        if self.scheme is not None:
            return self.scheme.start()
        if version is None or version.plan is None:
            return self.until_planned.start()
        plan, salts = version.plan, self._salts()
        return lambda rows: plan.route(rows.column(self.bucket).to_numpy(), salts(rows))

    def owners(self, version: ControlVersion | None) -> NDArray[np.int64]:
        """Return the worker of each virtual worker."""
        if version is not None:
            return version.owners.astype(np.int64)
        return np.arange(self.bins, dtype=np.int64) * self.workers // self.bins

    def _salts(self) -> Callable[[pa.RecordBatch], NDArray[np.integer]]:
        if self.salt is not None:
            name = self.salt
            return lambda rows: rows.column(name).to_numpy()
        _, _, source = micro_batch()
        first = source << 40  # sources begin with different workers

        def by_position(rows: pa.RecordBatch) -> NDArray[np.integer]:
            nonlocal first
            first += rows.num_rows
            return spread(np.arange(first - rows.num_rows, first))

        return by_position


class Following:
    """The decisions of one task, by the version whose pin arrives with its rows."""

    version = 0
    """The number of the version that the task follows; 0: none."""

    def __init__(self, controlled: Controlled) -> None:
        self._controlled = controlled
        self._decide: Decide | None = None

    def __call__(self, rows: pa.RecordBatch) -> Bins:
        if self._decide is None:
            pin = Pin.from_long(rows.column(self._controlled.pin)[0].as_py())
            self._decide = self._follow(self._controlled.version_of(pin))
        return self._decide(rows)

    def _follow(self, version: ControlVersion | None) -> Decide:
        self.version = 0 if version is None else version.number
        choose, owners = self._controlled.choice(version), self._controlled.owners(version)
        return lambda rows: owners.take(choose(rows))


@dataclass(frozen=True)
class StreamPacker:
    """The source side of the packed exchange, with a report for the driver beside the blocks."""

    destinations: Destinations
    names: tuple[str, ...]
    """The names of the columns, in order; the names in the batches are ignored."""
    keys: tuple[str, ...]
    bucket: str
    weight: str | None
    buckets: int
    dropped: tuple[str, ...]
    """Columns that workers do not need."""
    called: int = 0
    """Number of workers that get a row from every task with rows, so that each of them runs."""
    time: str | None = None
    """The column of event times, in microseconds; each worker gets the latest one."""
    reported: ReportedKeys = PLAIN
    """How the report names hot keys."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _, batch, source = micro_batch()
        decide = self.destinations.start()
        part, latest = -1, None
        for part, rows in enumerate(packing.gathered(batches)):
            rows = rows.rename_columns(list(self.names))  # noqa: PLW2901
            sent = packing.packed(rows.drop_columns(list(self.dropped)), decide(rows))
            buckets = rows.column(self.bucket).to_numpy()
            hot = hot_keys(rows, self.keys, buckets, self.reported)
            followed = decide.version if isinstance(decide, Following) else 0
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
    rows: pa.RecordBatch,
    keys: tuple[str, ...],
    buckets: NDArray[np.integer],
    reported: ReportedKeys = PLAIN,
) -> tuple[tuple[str, int], ...]:
    """Return the most frequent keys of some rows, and their numbers of rows; none if hidden.

    All rows of a key are in one bucket, and only the fullest buckets are searched. The keys in them
    are counted exactly. Any other key has at most the number of rows of the next fullest bucket.

    >>> pages = pa.record_batch({"page": ["a", "b", "a", "a", "b", "c"]})
    >>> hot_keys(pages, ("page",), np.array([4, 7, 4, 4, 7, 7]))
    (('a', 3), ('b', 2))
    """
    if reported.are_hidden:
        return ()
    full = np.bincount(buckets)
    if full.size > _FULLEST:
        is_full = np.zeros(full.size, np.bool_)
        is_full[np.argpartition(full, -_FULLEST)[-_FULLEST:]] = True
        rows = rows.select(list(keys)).filter(pa.array(is_full[buckets]))
    columns = rows.select(list(keys)).columns
    try:
        groups = Groups.of(columns)
    except pa.ArrowNotImplementedError:  # keys of a nested type, which only map_arrow allows
        return ()
    sizes, first = groups.sizes(), groups.first_rows()
    top = np.argsort(-sizes, kind="stable")[:_HOT]
    top = top[sizes[top] > 1]
    texts = [texts_of(column.take(pa.array(first[top])), reported) for column in columns]
    return tuple(
        (", ".join(parts)[:LETTERS], int(sizes[group]))
        for *parts, group in zip(*texts, top.tolist(), strict=True)
    )


def texts_of(values: pa.Array, reported: ReportedKeys) -> list[str]:
    """Return the texts that reports show for columns of keys; nulls are never hashed."""
    has_value = values.is_valid().to_pylist()
    texts = zip(_plain_texts(values), has_value, strict=True)
    return [reported.shown(text) if valid else text for text, valid in texts]


def _plain_texts(values: pa.Array) -> list[str]:
    """Return values as text: as Python shows them, else as Arrow does, else as "?"."""
    try:
        return [str(value) for value in values.to_pylist()]
    except (pa.ArrowException, LookupError, OverflowError, ValueError):
        pass
    try:
        return [str(value) for value in values.cast(pa.string()).to_pylist()]
    except pa.ArrowException:
        return ["?"] * len(values)


def _with_report(sent: pa.RecordBatch, report: SourceReport) -> pa.RecordBatch:
    """Add the report to the row of the first block."""
    texts = pa.array([report.to_json(), *([None] * (sent.num_rows - 1))], pa.string())
    columns = [*sent.columns, texts, pa.nulls(sent.num_rows, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, _COLUMNS)


def _calls(called: int, latest: int | None) -> pa.RecordBatch:
    """Return a row without a block for each worker that has to run."""
    columns = [
        pa.array(range(called), pa.int32()),
        pa.nulls(called, pa.binary()),
        pa.nulls(called, pa.string()),
        pa.array([latest] * called, pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, _COLUMNS)
