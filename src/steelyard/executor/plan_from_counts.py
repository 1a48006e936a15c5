"""Make a routing plan inside a query, in one of Spark's tasks.

The counts of all buckets enter; the entries of a `RoutingTable` leave.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.plans import Planner


@dataclass(frozen=True)
class PlanFromCounts:
    """Plans for counts by bucket. Each call is independent of the calls before.

    Args:
        epsilon: No bin gets more than `(1 + epsilon)` times its share.
        buckets: The number of buckets that keys are hashed into.
        capacities: For each bin a number in proportion to its share.
        labels: For each bin the number that the table has for it.
    """

    epsilon: float
    buckets: int
    capacities: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def steps(self) -> int:
        """The number of steps that is enough for a bucket with all bins."""
        return (self.labels.size - 1).bit_length()

    def __call__(self, counted: Iterable[tuple[int, float | None]]) -> list[int]:
        """Return the entries of a table, from pairs of a bucket and its count."""
        counts = np.zeros(self.buckets)
        for bucket, count in counted:
            counts[bucket] = count or 0.0  # the weights of a bucket may all be null
        if not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError("weight: the column must hold numbers of at least 0")
        planner = Planner(self.labels.size, self.epsilon, self.buckets, self.capacities)
        plan = planner.update(counts)
        entries: list[int] = plan.table(self.labels, self.steps).entries.tolist()
        return entries
