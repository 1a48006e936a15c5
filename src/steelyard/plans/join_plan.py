"""Plan a join: each bucket is a grid, whose columns divide one frame and whose cells the other.

A routing plan and the rows of both frames by bucket enter; a `JoinPlan` leaves. It brings every
pair of rows with equal keys together in exactly one bin.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.plans.bucket_counts import checked_counts
from steelyard.plans.cells import WHOLE
from steelyard.plans.routing_plan import RoutingPlan


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """For every bucket the bins in which rows of the frames `big` and `small` meet.

    The bins of a bucket form a grid of one or more columns. A row of `small` belongs to the column
    that its salt selects, and goes to all bins of this column. A row of `big` goes to one bin of
    each column; its salt selects them. So a row of `big` and a row of `small` of the same bucket
    meet in exactly one bin. With one column, only the rows of `big` are divided; with one bin in
    each column, only those of `small`.

    Args:
        columns: For every bucket its columns, as a routing plan whose bins are columns.
        cells: For every column its bins. No bin is in two columns of a bucket.

    >>> quarters = [(i, (i + 1) * WHOLE // 4) for i in range(4)]
    >>> plan = RoutingPlan.from_cells(4, [[(0, WHOLE)], quarters])
    >>> grid = JoinPlan.of(plan, big=[9, 100], small=[9, 100])
    >>> grid.columns.splits
    {1: [Cell(bin=1, weight=0.5), Cell(bin=2, weight=0.5)]}
    >>> [[cell.bin for cell in cells] for cells in grid.cells.splits.values()]
    [[0, 1], [2, 3]]
    """

    columns: RoutingPlan
    cells: RoutingPlan

    @classmethod
    def by_big(cls, plan: RoutingPlan) -> Self:
        """Return the plan that divides only the rows of `big`, as a routing plan does."""
        return cls._divided(plan, _first_cells(plan))

    @classmethod
    def of(cls, plan: RoutingPlan, big: ArrayLike, small: ArrayLike) -> Self:
        """Return the plan that moves few rows to the bins of a routing plan.

        Each bin keeps its share of the pairs of a bucket.

        Args:
            plan: The bins of each bucket and their shares of the pairs of the bucket.
            big: The rows of `big` by bucket.
            small: The rows of `small` by bucket.
        """
        rows, others = (checked_counts(counts, plan.buckets) for counts in (big, small))
        begins = _first_cells(plan)
        for bucket in np.flatnonzero(plan.copies > 1).tolist():
            own = np.arange(plan.starts[bucket], plan.starts[bucket + 1])
            if np.unique(plan.bins_of[own]).size == own.size:
                number = _columns(own.size, rows[bucket], others[bucket])
                begins[[column[0] for column in np.array_split(own, number)]] = True
        return cls._divided(plan, begins)

    @classmethod
    def _divided(cls, plan: RoutingPlan, begins: NDArray[np.bool_]) -> Self:
        """Return the plan whose columns begin at these cells of a routing plan."""
        first = np.flatnonzero(begins)
        starts = np.append(first, plan.ends.size)
        tops = plan.ends[starts[1:] - 1]
        bottoms = np.where(_first_cells(plan)[first], 0, plan.ends[first - 1])
        column = begins.cumsum() - 1
        inside = (plan.ends - bottoms[column]) / (tops - bottoms)[column]
        ends = np.rint(inside * WHOLE).astype(np.int64)
        numbers = np.arange(first.size, dtype=np.int32)
        of_bucket = first.searchsorted(plan.starts)
        return cls(
            RoutingPlan(first.size, of_bucket, numbers, tops, np.zeros(first.size)),
            RoutingPlan(plan.bins, starts, plan.bins_of, ends, plan.shares),
        )

    @property
    def has_grids(self) -> bool:
        """Whether a bucket has several columns, so that rows of `big` are copied."""
        return self.columns.bins > self.columns.buckets

    @property
    def gridded(self) -> NDArray[np.bool_]:
        """For every bucket whether it has several columns."""
        return self.columns.copies > 1

    @property
    def divided(self) -> NDArray[np.bool_]:
        """For every bucket whether one of its columns has several bins."""
        return np.maximum.reduceat(self.cells.copies, self.columns.starts[:-1]) > 1


def _first_cells(plan: RoutingPlan) -> NDArray[np.bool_]:
    """Return for every cell whether it is the first of its bucket."""
    begins = np.zeros(plan.ends.size, bool)
    begins[plan.starts[:-1]] = True
    return begins


def _columns(bins: int, big: float, small: float) -> int:
    """Return the number of columns with which the fewest rows reach a bucket's bins.

    With c columns of equal size, a row of `big` goes to c bins, and a row of `small` to bins / c.
    """
    columns = np.arange(1, bins + 1)
    return int(columns[np.argmin(big * columns + small * bins / columns)])
