"""Look up the plan of a batch of a real-time query, in a task that runs before the batch.

The newest control version enters; one row with the pin and the entries of a `RoutingTable` leaves.
The query reads the row as a scalar subquery, so no message passes through Python.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from steelyard.control.definition import Definition
from steelyard.control.store import ControlStore, Pin
from steelyard.control.version import ControlVersion
from steelyard.executor.task_context import micro_batch
from steelyard.plans import Planner

SCHEMA = "pin long, entries array<long>, failure string"


@dataclass(frozen=True)
class PlanChoice:
    """The choice of the plan that a batch follows.

    The function never raises an error, because Spark would hide its reason. Instead the row that
    leaves says what failed, and the query raises the error.
    """

    path: str
    identity: str
    workers: int
    virtual_workers: int
    buckets: int
    definition: Definition
    parts: int = 1
    """The number of virtual workers that share a key that is not hot."""

    @property
    def steps(self) -> int:
        """The number of steps of a lookup that is enough for a bucket on all workers."""
        return (self.workers - 1).bit_length()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        query, batch, _ = micro_batch()
        row: tuple[int | None, list[int] | None, str | None]
        try:
            pin, entries = self.choose(query, batch)
            row = pin.to_long(), entries, None
        except (OSError, ValueError, LookupError) as error:
            row = None, None, f"control: {error}".replace("control: control:", "control:")
        kinds = (pa.int64(), pa.list_(pa.int64()), pa.string())
        columns = [pa.array([value], kind) for value, kind in zip(row, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, ["pin", "entries", "failure"])

    def choose(self, query: str, batch: int) -> tuple[Pin, list[int]]:
        """Return the pin of a batch, and the entries of its table.

        Raises:
            LookupError: The version of an interrupted batch is not in the folder.
            ValueError: Another query uses the control path, or the query has another definition, or
                this host does not see the folder of the driver.
        """
        store = ControlStore(self.path)
        if not store.is_identified_by(self.identity):
            raise ValueError(
                f"the folder {store.shown} is not the one that the driver uses; give a path that "
                "the driver and all executors share"
            )
        store.claim(query)
        store.require_same(query, batch, self.definition)
        pin = store.pin_batch(query, batch)
        return pin, self.entries(store.pinned(pin))

    def entries(self, version: ControlVersion | None) -> list[int]:
        """Return the table of a version; without a plan, every bucket is at its first choice."""
        fits = version is not None and version.fits(
            self.virtual_workers, self.buckets, self.workers
        )
        if version is not None and fits and version.plan is not None:
            plan = version.plan.in_parts(self.parts).for_owners(version.owners, self.workers)
        else:
            plan = Planner(self.workers, buckets=self.buckets).plan.in_parts(self.parts)
        entries: list[int] = plan.table(steps=self.steps).entries.tolist()
        return entries
