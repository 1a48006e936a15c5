"""Workers without state: the next free task slot runs them.

Blocks enter; results or partial states leave, and a report. This runs inside Spark's Python tasks;
of Spark it knows only the numbers of the micro-batch and of the task.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from steelyard.aggregators import Aggregation
from steelyard.executor import packing
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.task_context import micro_batch
from steelyard.executor.worker import Batches, Made, States, Task, Worker
from steelyard.executor.worker_output import in_parts, only_report, without_report


@dataclass(frozen=True)
class Partials(Worker):
    """The aggregation of rows into partial states: one row for each key, in numbered columns."""

    aggregation: Aggregation

    def start(self) -> Task:
        return _Partials(self.aggregation)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the partial states."""
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
        yield from in_parts(states.rename_columns([f"c{i}" for i in range(states.num_columns)]))

    @property
    def made(self) -> Made:
        return self._states.taken


@dataclass(frozen=True)
class Pulled:
    """A worker that runs in any task; its last row holds the report in a column of its own."""

    worker: Worker
    schema: pa.Schema
    """The schema of the results, without the report."""
    watch: Stopwatch

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        _, batch, number = micro_batch()
        if batch == 0 and number == 0:
            for calls in self.worker.calls():
                yield without_report(calls, self.schema)
        timed = self.watch.start(self.worker.start(), number, batch)
        has_rows = False
        for table in packing.unpacked(batches):
            has_rows = True
            for made in timed.work(table):
                yield without_report(made, self.schema)
        if has_rows:
            for made in timed.finish():
                yield without_report(made, self.schema)
            yield only_report(timed.report(), self.schema)
