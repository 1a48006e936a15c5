"""Workers that keep partial states for a period, then send them on.

Blocks and the states of the period enter; the states of a finished period leave, and a report.
This runs inside Spark's Python tasks and knows no Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from steelyard.aggregators import Aggregation
from steelyard.control.definition import Definition
from steelyard.executor import packing
from steelyard.executor.period import Period
from steelyard.executor.pulled_worker import Partials
from steelyard.executor.state_values import decoded, encoded
from steelyard.executor.stateful_worker import BatchResult
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker import Batches, Made, States, Task
from steelyard.executor.worker_output import BLOCKS, in_parts, only_report, without_report

MOST_HELD = 2**25
"""Bytes of partial states above which a worker does not wait for the end of its period."""


@dataclass(frozen=True)
class Periodic:
    """A delegated worker that keeps partial states for a period, then sends and forgets them.

    The period depends on the number of the micro-batch, or on the event times in it, never on the
    clock. A replay of a micro-batch therefore gives the same result.
    """

    aggregation: Aggregation
    period: Period
    workers: int
    shard: str | None
    """The column with the shard in which partial states are merged; None: Spark merges them."""
    watch: Stopwatch
    definition: Definition
    most_held: float
    """Bytes of partial states above which they are sent before the period is over.

    Infinite if a watermark follows. Early states would move the watermark, and Spark would drop
    the states that other workers still hold as too late.
    """

    def __call__(
        self, kept: bytes | None, batches: Batches, worker: int, batch: int
    ) -> BatchResult:
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
        if self.period.ends_with(batch) or held.nbytes > self.most_held:
            made += self._sent(held)
            held = held.slice(0, 0)
        # With event time all workers must end a period in the same micro-batch, also those without
        # states: the others would move the watermark, and later states would be dropped.
        if not held.num_rows and not self.period.micros:
            now = (
                0  # without states the number has no effect, and a constant value is not rewritten
            )
        settings = {"period": str(now), "length": self.period.length, "workers": str(self.workers)}
        after = encoded(held, self.definition, settings)
        report = replace(timed.report(), held=held.num_rows)
        return BatchResult(after, [*made, only_report(report, self.schema)])

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output without reports: partial states, or blocks of them by shard."""
        return BLOCKS if self.shard is not None else Partials(self.aggregation).schema

    def _resumed(self, kept: bytes) -> tuple[int | None, pa.Table]:
        """Return the period number of the stored states, and these states.

        The number is None if the length of the period has changed. All workers detect that in the
        same micro-batch and send their states, before the watermark can move.
        """
        partial, settings = decoded(kept, self.definition, self.aggregation.partial_schema)
        workers = int(settings["workers"])
        if workers != self.workers:
            raise RuntimeError(
                f"the checkpoint has the state of {workers} workers, and now there are "
                f"{self.workers}: use {workers} workers, or a new checkpoint"
            )
        is_same = settings.get("length", self.period.length) == self.period.length
        return int(settings["period"]) if is_same else None, partial

    def _sent(self, partial: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
        return [self._by_shard(rows) for rows in in_parts(partial)]

    def _by_shard(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.shard is None:
            return without_report(rows.rename_columns(self.schema.names), self.schema)
        shards = rows.column(self.shard).to_numpy()
        return without_report(packing.packed(rows, shards), self.schema)


class _Held(Task):
    def __init__(self, aggregation: Aggregation, most: float) -> None:
        self.states, self._most = States(aggregation), most

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        self.states.add(table)
        # If merging halves the states, the worker keeps them and waits for the next excess.
        if self.states.bytes > self._most and self.states.merge() > self._most / 2:
            yield from self.states.take().to_batches()

    @property
    def made(self) -> Made:
        return self.states.taken


def _latest(batches: Batches) -> int | None:
    """Return the latest event time of the whole micro-batch, as the source tasks report it."""
    times = [pc.max(batch.column("latest")).as_py() for batch in batches]
    return max((int(time) for time in times if time is not None), default=None)
