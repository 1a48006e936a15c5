"""Workers that merge all partial states of a key.

Partial states enter and are merged with the stored ones; results of changed keys leave. This runs
inside Spark's Python tasks and knows no Spark.
"""

from dataclasses import dataclass

from steelyard.aggregators import Aggregation
from steelyard.control.definition import Definition
from steelyard.executor import packing
from steelyard.executor.state_values import decoded, encoded
from steelyard.executor.stateful_worker import BatchResult
from steelyard.executor.worker import Batches
from steelyard.executor.worker_output import in_parts, one_block


@dataclass(frozen=True)
class Merging:
    """A worker that keeps the merged states of some keys, and sends the results that changed."""

    aggregation: Aggregation
    dropped: tuple[str, ...]
    definition: Definition

    def __call__(
        self, kept: bytes | None, batches: Batches, worker: int, batch: int
    ) -> BatchResult:
        old = self.aggregation.create()
        if kept is not None:
            old, _ = decoded(kept, self.definition, old.schema)
        new = self.aggregation.merge(*packing.unpacked(batches))
        if not new.num_rows:
            # A shard without keys stores the definition, too: a restart may bring its first keys.
            return BatchResult(kept or encoded(old, self.definition, {}), [])
        # Merging keeps the order in which keys first occur, so the changed keys come first.
        merged = self.aggregation.merge(new, old)
        result = self.aggregation.result(merged.slice(0, new.num_rows))
        result = result.drop_columns(list(self.dropped))
        after = encoded(merged, self.definition, {})
        return BatchResult(after, [one_block(part) for part in in_parts(result)])
