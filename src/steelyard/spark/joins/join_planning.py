"""Plan a join: count what the balance depends on, and decide which frame is divided where.

Two frames with key columns of the same names enter; a `JoinPlan` leaves.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.bucket_counts import Floats
from steelyard.plans.join_plan import JoinPlan
from steelyard.plans.join_work import most_frequent, suspects, work_of
from steelyard.spark.columns import Key
from steelyard.spark.joins.match_counts import pairs_of, small_counts
from steelyard.spark.repartitioning import bucket_counts, equal_rows, fitted, warn_of_equal_rows
from steelyard.spark.salts import Salts


@dataclass(frozen=True)
class JoinPlanning:
    """What the plan of a join is made from.

    Args:
        big: The rows of `big` that may be in the result.
        small: The rows of `small`.
        key: The key columns, which both frames have, and the number of buckets.
        salts: The columns that distinguish the rows of `big` of one key.
        others: The columns that distinguish the rows of `small` of one key; None if none is known.
        sample: The fraction of the rows to count, or None for all.
    """

    big: DataFrame
    small: DataFrame
    key: Key
    salts: Salts
    others: Salts | None
    sample: float | None

    def by_rows(self, planner: Planner, weight: str | None) -> JoinPlan:
        """Return a plan that balances the rows of `big`, or their weights."""
        counts = bucket_counts(self.big, self.key, weight=weight, sample=self.sample)
        return self._for_big(self._fitted(planner.update(counts)))

    def by_pairs(self, planner: Planner) -> JoinPlan:
        """Return a plan that balances the rows of both frames and the pairs of matching rows.

        The rows of `big` are counted, and then those of `small`. Only if some keys have far more
        pairs than others, these pairs are counted, too.
        """
        big = bucket_counts(self.big, self.key, sample=self.sample) / (self.sample or 1.0)
        counted = small_counts(self.small, self.key, most_frequent(big), self.sample)
        found = suspects(big, counted, planner.bins)
        if found is None:
            return self._for_big(self._fitted(planner.update(big)))
        pairs = pairs_of(self.big, self.small, self.key, found.buckets, self.sample)
        plan = self._fitted(planner.update(work_of(big, counted.rows, found, pairs)))
        return self._gridded(plan, big, counted.rows)

    def _fitted(self, plan: RoutingPlan) -> RoutingPlan:
        return fitted(plan, self.salts)

    def _for_big(self, plan: RoutingPlan) -> JoinPlan:
        warn_of_equal_rows(self.big, plan, self.key.bucket(), self.salts)
        return JoinPlan.by_big(plan)

    def _gridded(self, plan: RoutingPlan, big: Floats, small: Floats) -> JoinPlan:
        """Return the plan that moves the fewest rows, and divides only rows that differ."""
        if self.others is not None:
            grid = JoinPlan.of(plan, big, small)
            if equal_rows(self.small, grid.columns, self.key.bucket(), self.others) is None:
                return grid
        return self._for_big(plan)
