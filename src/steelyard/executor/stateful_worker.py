"""Workers that stay on the executor that holds their state: the protocol that Spark calls.

The state of a worker and the blocks of a micro-batch enter; the new state and rows leave. This runs
inside Spark's Python tasks and knows no Spark.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa

from steelyard.executor import packing
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker import Batches, Worker
from steelyard.executor.worker_output import BLOCKS, in_parts, one_block, only_report


class BatchResult(NamedTuple):
    """The result of a micro-batch at a stateful worker."""

    kept: bytes | None
    """The state for the next micro-batch; None: no state."""
    rows: list[pa.RecordBatch]
    """Results or partial states, with a column for the report."""


class StatefulWorker(Protocol):
    """A worker with one value of state, which Spark stores between micro-batches.

    The value is the partial states that the worker holds, with the settings that they depend on, as
    `state_values.encoded` writes them. It is None before the first micro-batch, and always if the
    worker keeps no state. The new state depends only on the arguments of the call, so that a replay
    of a micro-batch gives the same state.
    """

    def __call__(
        self, kept: bytes | None, batches: Batches, worker: int, batch: int
    ) -> BatchResult:
        """Process a micro-batch.

        Args:
            kept: The state after the last micro-batch that had rows for this worker.
            batches: The blocks of this micro-batch.
            worker: The number of the worker, or of the shard of keys.
            batch: The number of the micro-batch.

        Returns:
            The state to keep, and the rows that leave.
        """


@dataclass(frozen=True)
class DelegatedMap:
    """A delegated worker without state, which calls a function of the user."""

    worker: Worker
    watch: Stopwatch

    def __call__(
        self, kept: bytes | None, batches: Batches, worker: int, batch: int
    ) -> BatchResult:
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
        rows = [
            *(one_block(part) for rows in made for part in in_parts(rows)),
            only_report(timed.report(), BLOCKS),
        ]
        return BatchResult(None, rows)
