"""Find the bin of a message: by its bucket, and by its salt if the bucket is split.

The cells of a plan enter; the bins of messages leave.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.plans.cells import Cells


class Lookup:
    """Finds the bins of messages in the cells of a plan."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self.split_buckets: NDArray[np.int64] = np.flatnonzero(cells.copies > 1)
        self._first = cells.bins_of[cells.starts[:-1]].copy()
        """For each bucket its bin, or ~rank if the bucket is split."""
        self._first[self.split_buckets] = ~np.arange(self.split_buckets.size, dtype=np.int32)

    def route(self, buckets: NDArray[np.integer], salts: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the bins of messages with these buckets and these 64-bit salts."""
        routed = self._first.take(buckets)
        split = np.flatnonzero(routed < 0)
        if split.size:
            position = salts[split].view(np.uint64) >> np.uint64(32)
            routed[split] = self._bins_at(~routed[split], position.view(np.int64))
        return routed

    def _bins_at(self, rank: NDArray[np.int32], position: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the bins of split buckets at these positions from 0 to 2^32."""
        guide, ends = self._guide, self._cells.ends
        cell = guide.cells.take(guide.starts[rank] + (position >> guide.shifts[rank]))
        behind = np.flatnonzero(position >= ends.take(cell))
        while behind.size:
            cell[behind] += 1
            behind = behind[position[behind] >= ends.take(cell[behind])]
        return self._cells.bins_of.take(cell)

    @cached_property
    def _guide(self) -> "_Guide":
        """The first cell that a salt may be in, by rank and the leading bits of the salt.

        The guide has four to eight entries for each cell, so one or two steps find the cell.
        """
        split = self.split_buckets
        shifts = 32 - np.frexp(4 * self._cells.copies[split])[1].astype(np.int64)
        starts = np.concatenate(([0], (2 ** (32 - shifts)).cumsum()[:-1]))
        cells = [
            self._cells_at(bucket, _marks(shift))
            for bucket, shift in zip(split.tolist(), shifts.tolist(), strict=True)
        ]
        return _Guide(np.concatenate(cells), starts, shifts)

    def _cells_at(self, bucket: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells of a bucket that contain these positions from 0 to 2^32."""
        span = self._cells.span(bucket)
        ends = self._cells.ends[span]
        cells: NDArray[np.int64] = span.start + ends.searchsorted(places, "right")
        return cells


class _Guide(NamedTuple):
    """The cell at which the search for a salt begins, for every split bucket."""

    cells: NDArray[np.int64]
    starts: NDArray[np.int64]
    shifts: NDArray[np.int64]


def _marks(shift: int) -> NDArray[np.int64]:
    """Return the multiples of 2^shift from 0 up to 2^32."""
    return np.arange(2 ** (32 - shift), dtype=np.int64) << shift
