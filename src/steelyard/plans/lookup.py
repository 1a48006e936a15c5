"""Find the bin of a message: by its bucket, and by its salt if the bucket is split.

The cells of a plan enter; the bins of messages leave, or tables for a lookup elsewhere.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.plans.cells import Cells


class Tables(NamedTuple):
    """A plan as arrays from which a bin is looked up without a search.

    The rank of a split bucket is its position among the split buckets.
    """

    first: NDArray[np.int32]
    """For each bucket its bin, or ~rank if the bucket is split."""
    guide: NDArray[np.int32]
    """The first cell that a salt may be in, at `guide_starts[rank]` + the leading bits of the
    salt."""
    guide_starts: NDArray[np.int32]
    """For each rank the start of its part of the guide."""
    guide_shifts: NDArray[np.int32]
    """For each rank the number of a salt's high 32 bits that are not leading bits."""
    ends: NDArray[np.int64]
    """For each cell of a split bucket rank * 2^32 + its end, a number out of 2^32. Then follow
    `steps` entries that are larger than any salt."""
    bins: NDArray[np.int32]
    """For each cell of a split bucket its bin."""
    steps: int
    """The number of cells after the guide's cell that a salt may be in. Of the `steps` ends from
    the guide's cell on, each end that is not above the salt moves the salt one cell further."""


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

    def tables(self) -> Tables:
        """Return the plan as arrays, for a lookup in code that cannot call `route`."""
        split, copies = self.split_buckets, self._cells.copies
        if not split.size:
            none = np.empty(0, np.int32)
            return Tables(self._first, none, none, none, none.astype(np.int64), none, 0)
        guide = self._guide
        own = np.repeat(copies > 1, copies)  # cells of split buckets
        number = np.cumsum(own) - 1
        rank = np.repeat(np.arange(split.size), copies[split])
        # The largest number of cells that begin within one part of the guide.
        last = [self._cells_at(b, _marks(shift) + 2**shift - 1) for b, shift in guide.of(split)]
        steps = int((np.concatenate(last) - guide.cells).max())
        ends = (rank << 32) + self._cells.ends[own]
        ends = np.append(ends, np.full(steps, 2**62))
        return Tables(
            self._first,
            number[guide.cells].astype(np.int32),
            guide.starts.astype(np.int32),
            guide.shifts.astype(np.int32),
            ends,
            self._cells.bins_of[own],
            steps,
        )

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

    def of(self, split: NDArray[np.int64]) -> Iterable[tuple[int, int]]:
        """Return each split bucket with its shift."""
        return zip(split.tolist(), self.shifts.tolist(), strict=True)


def _marks(shift: int) -> NDArray[np.int64]:
    """Return the multiples of 2^shift from 0 up to 2^32."""
    return np.arange(2 ** (32 - shift), dtype=np.int64) << shift
