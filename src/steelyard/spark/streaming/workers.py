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

from steelyard.aggregators import Aggregation
from steelyard.control.reports import LATENCY_BINS, WorkerReport, latency_bins
from steelyard.spark import packing
from steelyard.spark.streaming.sources import micro_batch
from steelyard.spark.working import Made, States, Task, Worker

REPORT = "__steelyard_report"
BLOCKS = pa.schema([("bin", pa.int32()), ("block", pa.binary())])

Batches = Iterable[pa.RecordBatch]

_SENT_ROWS = 2**18
"""So many rows are in a block at most."""


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
        yield from states.rename_columns([f"c{i}" for i in range(states.num_columns)]).to_batches()

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
            where = _failing_bucket(self._task, table, self._watch)
            raise RuntimeError(
                f"{self._name} failed in micro-batch {self._batch} on {where}: "
                f"{type(error).__name__}: {error}"
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


def _failing_bucket(task: Task, table: pa.Table, watch: Stopwatch) -> str:
    """The bucket whose rows make the work fail, found by halving; or all, if no half fails."""
    buckets = pc.unique(table[watch.bucket]).to_pylist()
    while len(buckets) > 1:
        half = buckets[: len(buckets) // 2]
        for part in (half, buckets[len(half) :]):
            rows = table.filter(pc.is_in(table[watch.bucket], pa.array(part, pa.int32())))
            try:
                list(task.work(rows.select(list(watch.visible))))
            except Exception:  # noqa: BLE001  # whatever the user's function raises
                buckets = part
                break
        else:
            return f"rows of {len(buckets)} buckets of keys together"
    return f"rows of bucket {buckets[0]} of keys"


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

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        task = _Held(self.aggregation)
        timed = self.watch.start(task, worker, batch)
        batches = list(batches)
        now = self.period.of(batch, _latest(batches))
        made: list[pa.RecordBatch] = []
        if kept is not None:
            number, partial = self._resumed(kept)
            if self.period.micros:
                now = max(now, number)
            if now == number:
                task.states.append(partial)
            else:
                made += self._sent(partial)
        for table in packing.unpacked(batches):
            timed.work(table)
        held = task.states.take()
        report = timed.report()
        if held.num_rows and self.period.ends_with(batch):
            made += self._sent(held)
            held = held.slice(0, 0)
        # By event time all workers must end a period with the same micro-batch, those with nothing
        # to send too: a late one's results would be beyond the watermark that the others moved.
        is_kept = held.num_rows or self.period.micros
        after = _encoded(now, held, self.workers) if is_kept else None
        return after, [*made, _only_report(report, self.schema)]

    @property
    def schema(self) -> pa.Schema:
        """What leaves, beside reports: partial states, or blocks of them if they meet by shards."""
        return BLOCKS if self.shard is not None else Partials(self.aggregation).schema

    def _resumed(self, kept: bytes) -> tuple[int, pa.Table]:
        number, partial, workers = _decoded(kept)
        if workers != self.workers:
            raise RuntimeError(
                f"the checkpoint has the state of {workers} workers, and now there are "
                f"{self.workers}: their number is fixed; use {workers}, or a new checkpoint"
            )
        return number, partial

    def _sent(self, partial: pa.Table) -> list[pa.RecordBatch]:
        rows = partial.combine_chunks().to_batches(max_chunksize=_SENT_ROWS)
        return [self._by_shard(batch) for batch in rows if batch.num_rows]

    def _by_shard(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.shard is None:
            return _without_report(rows.rename_columns(self.schema.names), self.schema)
        shards = rows.column(self.shard).to_numpy()
        return _without_report(packing.packed(rows, shards), self.schema)


class _Held(Task):
    def __init__(self, aggregation: Aggregation) -> None:
        self.states = States(aggregation)

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        self.states.add(table)
        return iter(())

    @property
    def made(self) -> Made:
        return self.states.taken


@dataclass(frozen=True)
class Staying:
    """A worker that stays and keeps nothing: a function of the user's."""

    worker: Worker
    watch: Stopwatch

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        timed = self.watch.start(self.worker.start(), worker, batch)
        made = []
        for table in packing.unpacked(batches):
            made += timed.work(table)
        made += timed.finish()
        return None, [
            *(_one_block(rows) for rows in made if rows.num_rows),
            _only_report(timed.report(), BLOCKS),
        ]


@dataclass(frozen=True)
class Merging:
    """Where partial states of some keys meet: all of them are kept, those that changed leave."""

    aggregation: Aggregation
    dropped: tuple[str, ...]

    def __call__(self, kept: bytes | None, batches: Batches, worker: int, batch: int) -> Kept:
        new = self.aggregation.merge(*packing.unpacked(batches))
        if not new.num_rows:
            return kept, []
        merged = new
        if kept is not None:
            _, old, _ = _decoded(kept)
            # Keys come in the order in which they are first seen: those that changed come first.
            merged = self.aggregation.merge(new, old)
        result = self.aggregation.result(merged.slice(0, new.num_rows))
        result = result.drop_columns(list(self.dropped))
        rows = result.combine_chunks().to_batches(max_chunksize=_SENT_ROWS)
        return _encoded(0, merged, 0), [_one_block(part) for part in rows]


@dataclass(frozen=True)
class Unpacked:
    """Blocks become rows again, for what comes after a stage that can only send few rows."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in packing.unpacked(batches):
            yield from table.cast(self.schema).to_batches()


def _one_block(rows: pa.RecordBatch) -> pa.RecordBatch:
    """All rows in one block, their columns named by their places."""
    numbered = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
    packed = packing.packed(numbered, np.zeros(rows.num_rows, np.int32))
    return _without_report(packed, BLOCKS)


def _without_report(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows of the schema, and the column for reports, which is empty."""
    columns = [rows.column(field.name).cast(field.type) for field in schema]
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


def _encoded(number: int, table: pa.Table, workers: int) -> bytes:
    schema = table.schema.with_metadata({"period": str(number), "workers": str(workers)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_table(table.cast(schema))
    return bytes(sink.getvalue())


def _decoded(kept: bytes) -> tuple[int, pa.Table, int]:
    table = pa.ipc.open_stream(kept).read_all()
    told = table.schema.metadata
    return int(told[b"period"]), table.replace_schema_metadata(), int(told[b"workers"])
