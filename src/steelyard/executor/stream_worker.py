"""The workers of a stream: what they make of blocks, timed, with a report for the driver.

Blocks enter; results, or partial states, leave. This runs inside Spark's Python tasks; of Spark it
knows only which micro-batch it is in.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.aggregators import Aggregation, Groups
from steelyard.aggregators.layout import as_type
from steelyard.control.definition import Definition
from steelyard.control.reports import LATENCY_BINS, WorkerReport, latency_bins
from steelyard.executor import packing
from steelyard.executor.stream_source import LETTERS, texts_of
from steelyard.executor.task_context import micro_batch
from steelyard.executor.worker import Made, States, Task, Worker

REPORT = "__steelyard_report"
BLOCKS = pa.schema([("bin", pa.int32()), ("block", pa.binary())])

Batches = Iterable[pa.RecordBatch]

PIECE = 2**20
"""Bytes of a piece of state: Spark holds several copies of a value in the memory of its JVM."""

_IN_PIECES = b"in pieces: "
"""Begins a value that holds only the number of its pieces; an Arrow stream begins otherwise."""

_SENT_ROWS, _SENT_BYTES = 2**18, 2**24
"""Most rows of a block, and about the most bytes: Spark holds a block in its memory as a whole."""

MOST_HELD = 2**25
"""Bytes of partial states above which a worker does not wait for the end of its period."""

_FIRST_KEYS = 5
"""Keys that are named if a worker fails."""


@dataclass(frozen=True)
class Partials(Worker):
    """Rows become partial states, one row for each key, in columns that are numbered."""

    aggregation: Aggregation

    def start(self) -> Task:
        return _Partials(self.aggregation)

    @property
    def schema(self) -> pa.Schema:
        """What leaves."""
        kinds = self.aggregation.partial_schema.types
        return pa.schema([(f"c{i}", kind) for i, kind in enumerate(kinds)])


class _Partials(Task):
    def __init__(self, aggregation: Aggregation) -> None:
        self._states = States(aggregation)

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        self._states.add(table)
        if self._states.are_many:
            yield from self.finish()

    def finish(self) -> Iterator[pa.RecordBatch]:
        states = self._states.take()
        yield from _in_parts(states.rename_columns([f"c{i}" for i in range(states.num_columns)]))

    @property
    def made(self) -> Made:
        return self._states.taken


@dataclass(frozen=True)
class Stopwatch:
    """How workers are watched: the columns that are for this alone."""

    bucket: str
    arrived: str | None
    """When a message arrived, in microseconds since 1970."""
    visible: tuple[str, ...]
    """The columns that the work is about."""
    keys: tuple[str, ...]
    workers: int
    tasks: int = 1
    """Of each worker: where it has several, they are numbered round by round."""

    def start(self, task: Task, worker: int, batch: int) -> "Timed":
        """Watch a task of a worker."""
        return Timed(self, task, worker, batch)


class Timed:
    """A task, watched: how many rows, how long, how late."""

    def __init__(self, watch: Stopwatch, task: Task, worker: int, batch: int) -> None:
        self._watch, self._task, self._worker, self._batch = watch, task, worker, batch
        self._rows, self._busy, self._began = 0, 0.0, time.time()
        self._latencies = np.zeros(LATENCY_BINS, np.int64)

    def work(self, table: pa.Table) -> list[pa.RecordBatch]:
        visible = table.select(list(self._watch.visible))
        begin = time.perf_counter()
        try:
            made = list(self._task.work(visible))
        except Exception as error:
            raise RuntimeError(
                f"{self._name} failed in micro-batch {self._batch} on "
                f"{_described(table, self._watch)}: {type(error).__name__}: {error}"
            ) from error
        self._busy += time.perf_counter() - begin
        self._rows += table.num_rows
        if self._watch.arrived is not None:
            arrived = table[self._watch.arrived].drop_null().to_numpy()
            self._latencies += latency_bins(time.time() - arrived / 1e6)
        return made

    def finish(self) -> list[pa.RecordBatch]:
        begin = time.perf_counter()
        try:
            made = list(self._task.finish())
        except Exception as error:
            raise RuntimeError(
                f"{self._name} failed in micro-batch {self._batch} when it put together what it "
                f"had: {type(error).__name__}: {error}"
            ) from error
        self._busy += time.perf_counter() - begin
        return made

    @property
    def _name(self) -> str:
        task, worker = divmod(self._worker, self._watch.workers)
        return f"worker {worker}" + (f" (task {task})" if self._watch.tasks > 1 else "")

    def report(self) -> WorkerReport:
        """What it did."""
        latencies = [(int(i), int(self._latencies[i])) for i in np.flatnonzero(self._latencies)]
        return WorkerReport(
            self._batch,
            self._worker,
            self._rows,
            self._busy,
            self._task.made.keys,
            tuple(latencies),
            self._task.made.bytes,
            self._began,
            time.time(),
        )


def _described(table: pa.Table, watch: Stopwatch) -> str:
    """How many rows, buckets and keys a table has, and which keys come first.

    The work is not tried again on parts of it: it may have effects elsewhere.
    """
    buckets = pc.count_distinct(table[watch.bucket]).as_py()
    size = f"{table.num_rows:,} rows of {buckets:,} buckets"
    (rows,) = table.select(list(watch.keys)).combine_chunks().to_batches()
    try:
        groups = Groups.of(rows.columns)
    except pa.ArrowException:  # keys of a nested type, which only functions can have
        return size
    first = rows.take(pa.array(groups.first_rows()[:_FIRST_KEYS]))
    keys = [", ".join(key)[:LETTERS] for key in zip(*map(texts_of, first.columns), strict=True)]
    more = "; ..." if groups.count > _FIRST_KEYS else ""
    return f"{size} and {groups.count:,} keys ({'; '.join(keys)}{more})"


@dataclass(frozen=True)
class Pulled:
    """A worker that is any task: results leave with a column for the report, which has a row."""

    worker: Worker
    schema: pa.Schema
    """Of the results, without the report."""
    watch: Stopwatch

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        _, batch, number = micro_batch()
        timed = self.watch.start(self.worker.start(), number, batch)
        some = False
        for table in packing.unpacked(batches):
            some = True
            for made in timed.work(table):
                yield _without_report(made, self.schema)
        if some:
            for made in timed.finish():
                yield _without_report(made, self.schema)
            yield _only_report(timed.report(), self.schema)


@dataclass(frozen=True)
class Period:
    """When partial states leave a worker: after so many batches, or so much event time."""

    batches: int = 1
    micros: int = 0

    def of(self, batch: int, latest: int | None) -> int:
        """The number of the period that a batch is in, whose latest event time is that."""
        if not self.micros:
            return batch // self.batches
        return -1 if latest is None else latest // self.micros

    def ends_with(self, batch: int) -> bool:
        """Whether nothing more can come into the period of a batch."""
        return not self.micros and (batch + 1) % self.batches == 0

    @property
    def length(self) -> str:
        """The length of a period: numbers of periods of another length mean something else."""
        return f"{self.micros} us" if self.micros else f"{self.batches} batches"


Kept = tuple[bytes | None, list[pa.RecordBatch]]
"""What is to be kept until the next micro-batch, and rows with a column for the report."""


@dataclass(frozen=True)
class Periodic:
    """A worker that stays: partial states of a period are kept, then sent on and forgotten.

    Which period it is depends on the number of the micro-batch, or on the event times in it, never
    on the clock: a replay does the same.
    """

    aggregation: Aggregation
    period: Period
    workers: int
    shard: str | None
    """The column that says where partial states meet, if not just by their keys."""
    watch: Stopwatch
    definition: Definition
    most_held: float
    """Bytes of partial states above which they are sent before the period is over.

    Infinite where a watermark follows: it would move, and Spark would drop what other workers still
    hold as too late.
    """

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        task = _Held(self.aggregation, self.most_held)
        timed = self.watch.start(task, worker, batch)
        batches = list(batches)
        now = self.period.of(batch, _latest(batches))
        made: list[pa.RecordBatch] = []
        if kept is not None:
            number, partial = self._resumed(kept)
            if self.period.micros and number is not None:
                now = max(now, number)
            if now == number:
                task.states.append(partial)
            else:
                made += self._sent(partial)
        for table in packing.unpacked(batches):
            for part in timed.work(table):
                made += self._sent(part)
        held = task.states.take()
        report = timed.report()
        if self.period.ends_with(batch) or held.nbytes > self.most_held:
            made += self._sent(held)
            held = held.slice(0, 0)
        # By event time all workers must end a period with the same micro-batch, those with nothing
        # to send too: a late one's results would be beyond the watermark that the others moved.
        if not held.num_rows and not self.period.micros:
            now = 0  # the number of no states does not matter: the value stays the same
        settings = {"period": str(now), "length": self.period.length, "workers": str(self.workers)}
        after = _encoded(held, self.definition, settings)
        return after, [*made, _only_report(report, self.schema)]

    @property
    def schema(self) -> pa.Schema:
        """What leaves, beside reports: partial states, or blocks of them if they meet by shards."""
        return BLOCKS if self.shard is not None else Partials(self.aggregation).schema

    def _resumed(self, kept: bytes) -> tuple[int | None, pa.Table]:
        """The number of the period of the held states, and these; None if its length has changed.

        All workers notice a changed length in the same micro-batch and send what they hold, before
        the watermark can move.
        """
        partial, settings = _decoded(kept, self.definition, self.aggregation.partial_schema)
        workers = int(settings["workers"])
        if workers != self.workers:
            raise RuntimeError(
                f"the checkpoint has the state of {workers} workers, and now there are "
                f"{self.workers}: their number is fixed; use {workers}, or a new checkpoint"
            )
        is_same = settings.get("length", self.period.length) == self.period.length
        return int(settings["period"]) if is_same else None, partial

    def _sent(self, partial: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
        return [self._by_shard(rows) for rows in _in_parts(partial)]

    def _by_shard(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.shard is None:
            return _without_report(rows.rename_columns(self.schema.names), self.schema)
        shards = rows.column(self.shard).to_numpy()
        return _without_report(packing.packed(rows, shards), self.schema)


class _Held(Task):
    def __init__(self, aggregation: Aggregation, most: float) -> None:
        self.states, self._most = States(aggregation), most

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        self.states.add(table)
        # Merged they may be few: then as much again can come before they are merged once more.
        if self.states.bytes > self._most and self.states.merge() > self._most / 2:
            yield from self.states.take().to_batches()

    @property
    def made(self) -> Made:
        return self.states.taken


@dataclass(frozen=True)
class Staying:
    """A worker that stays and keeps nothing: a function of the user's."""

    worker: Worker
    watch: Stopwatch

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        if kept is not None:
            raise ValueError(
                "the checkpoint is of a query with aggregators, and map_arrow keeps no state: keep "
                "the aggregators, or use a new checkpoint"
            )
        timed = self.watch.start(self.worker.start(), worker, batch)
        made = []
        for table in packing.unpacked(batches):
            made += timed.work(table)
        made += timed.finish()
        return None, [
            *(_one_block(part) for rows in made for part in _in_parts(rows)),
            _only_report(timed.report(), BLOCKS),
        ]


@dataclass(frozen=True)
class Merging:
    """Where partial states of some keys meet: all of them are kept, those that changed leave."""

    aggregation: Aggregation
    dropped: tuple[str, ...]
    definition: Definition

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        old = self.aggregation.create()
        if kept is not None:
            old, _ = _decoded(kept, self.definition, old.schema)
        new = self.aggregation.merge(*packing.unpacked(batches))
        if not new.num_rows:
            return kept, []
        # Keys come in the order in which they are first seen: those that changed come first.
        merged = self.aggregation.merge(new, old)
        result = self.aggregation.result(merged.slice(0, new.num_rows))
        result = result.drop_columns(list(self.dropped))
        after = _encoded(merged, self.definition, {})
        return after, [_one_block(part) for part in _in_parts(result)]


@dataclass(frozen=True)
class Unpacked:
    """Blocks become rows again, for what comes after a stage that can only send few rows."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in packing.unpacked(batches):
            columns = map(as_type, table.columns, self.schema.types)
            yield from pa.Table.from_arrays(list(columns), schema=self.schema).to_batches()


def _one_block(rows: pa.RecordBatch) -> pa.RecordBatch:
    """All rows in one block, their columns named by their places."""
    numbered = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
    packed = packing.packed(numbered, np.zeros(rows.num_rows, np.int32))
    return _without_report(packed, BLOCKS)


def _without_report(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the schema, and the column for reports, which is empty."""
    columns = [as_type(rows.column(field.name), field.type) for field in schema]
    columns.append(pa.nulls(rows.num_rows, pa.string()))
    return pa.RecordBatch.from_arrays(columns, [*schema.names, REPORT])


def _only_report(report: WorkerReport, schema: pa.Schema) -> pa.RecordBatch:
    """A row in which nothing but the report is there."""
    columns = [*(pa.nulls(1, kind) for kind in schema.types), pa.array([report.to_json()])]
    return pa.RecordBatch.from_arrays(columns, [*schema.names, REPORT])


def _latest(batches: Batches) -> int | None:
    """The latest event time of the whole micro-batch, of which every source task tells."""
    told = [pc.max(batch.column("latest")).as_py() for batch in batches]
    return max((int(time) for time in told if time is not None), default=None)


def _in_parts(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The rows in batches that are not too large for one block."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    size = max(1, rows.nbytes // max(1, rows.num_rows))
    most = max(1, min(_SENT_ROWS, _SENT_BYTES // size))
    return [part for part in rows.combine_chunks().to_batches(most) if part.num_rows]


def _encoded(table: pa.Table, definition: Definition, settings: dict[str, str]) -> bytes:
    """A table as a value of Spark's state, with the definition of the query."""
    table = table.replace_schema_metadata({**settings, "definition": definition.to_json()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _decoded(
    kept: bytes, definition: Definition, schema: pa.Schema
) -> tuple[pa.Table, dict[str, str]]:
    """The table and the settings that `_encoded` wrote; refused if the definition has changed."""
    table = pa.ipc.open_stream(kept).read_all()
    settings = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    if "definition" in settings:
        definition.require_same(settings["definition"])
    elif table.schema.names != schema.names or table.schema.types != schema.types:
        raise ValueError(  # by a version that wrote no definitions
            f"the checkpoint has the state {_columns(table.schema)}, and this query has "
            f"{_columns(schema)}: keep its key and its aggregators, or use a new checkpoint"
        )
    columns = list(map(as_type, table.columns, schema.types))
    return pa.Table.from_arrays(columns, schema=schema), settings


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def cut(value: bytes) -> tuple[bytes, list[bytes]]:
    """Cut a long value into pieces; the short value that replaces it, and the pieces.

    >>> cut(b"short")
    (b'short', [])
    >>> first, pieces = cut(b"x" * (PIECE + 5))
    >>> first, [len(piece) for piece in pieces]
    (b'in pieces: 2', [1048576, 5])
    >>> pieces_of(first)
    2
    """
    if len(value) <= PIECE:
        return value, []
    pieces = [value[start : start + PIECE] for start in range(0, len(value), PIECE)]
    return _IN_PIECES + str(len(pieces)).encode(), pieces


def pieces_of(first: bytes) -> int:
    """The number of pieces of a value; 0 if it is whole."""
    return int(first.removeprefix(_IN_PIECES)) if first.startswith(_IN_PIECES) else 0
