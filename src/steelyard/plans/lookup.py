"""How the bin of a message is looked up: by its bucket, and by its salt if that is split.

The cells of a plan enter; bins of messages leave, or tables in which others can look them up.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.plans.cells import Cells


class Tables(NamedTuple):
    """How to find a bin by looking up numbers."""

    first: NDArray[np.int32]
    """By bucket: its bin, or ~rank if it is the rank-th of the split ones."""
    guide: NDArray[np.int32]
    """By the place of a rank + the leading bits of a salt: the first cell that it may be in."""
    guide_starts: NDArray[np.int32]
    """By rank: its place in the guide."""
    guide_shifts: NDArray[np.int32]
    """By rank: how many of a salt's high 32 bits are not leading bits."""
    ends: NDArray[np.int64]
    """By cell: where it ends, as a part of 2^32, beyond rank * 2^32; and as many again as there are
    steps, which are beyond everything."""
    bins: NDArray[np.int32]
    """By cell: its bin."""
    steps: int
    """A salt is in the cell that the guide tells, or in one of as many after it: so many further on
    as ends among these are not above it."""


class Lookup:
    """Finds the bins of messages in the cells of a plan."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self.split_buckets: NDArray[np.int64] = np.flatnonzero(cells.copies > 1)
        self._first = cells.bins_of[cells.starts[:-1]].copy()
        """The bin of a whole bucket; ~rank of a split one."""
        self._first[self.split_buckets] = ~np.arange(self.split_buckets.size, dtype=np.int32)

    def route(self, buckets: NDArray[np.integer], salts: NDArray[np.integer]) -> NDArray[np.int32]:
        """The bins of messages of these buckets with these 64-bit salts."""
        routed = self._first.take(buckets)
        split = np.flatnonzero(routed < 0)
        if split.size:
            position = salts[split].view(np.uint64) >> np.uint64(32)
            routed[split] = self._bins_at(~routed[split], position.view(np.int64))
        return routed

    def _bins_at(self, rank: NDArray[np.int32], position: NDArray[np.int64]) -> NDArray[np.int32]:
        """The bins at these places, from 0 to 2^32, of split buckets."""
        guide, ends = self._guide, self._cells.ends
        cell = guide.cells.take(guide.starts[rank] + (position >> guide.shifts[rank]))
        behind = np.flatnonzero(position >= ends.take(cell))
        while behind.size:
            cell[behind] += 1
            behind = behind[position[behind] >= ends.take(cell[behind])]
        return self._cells.bins_of.take(cell)

    def tables(self) -> Tables:
        """The plan as arrays in which a bin can be looked up, for those who cannot call `route`."""
        split, copies = self.split_buckets, self._cells.copies
        if not split.size:
            none = np.empty(0, np.int32)
            return Tables(self._first, none, none, none, none.astype(np.int64), none, 0)
        guide = self._guide
        own = np.repeat(copies > 1, copies)  # cells of split buckets
        number = np.cumsum(own) - 1
        rank = np.repeat(np.arange(split.size), copies[split])
        # The most cells that begin within one part of the guide: so many steps lead to any.
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
        """By rank and the leading bits of a salt, the first cell that it may fall into.

        Four to eight entries for each cell, so that a step or two lead to the right one.
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
        """The cells of a bucket in which these places between 0 and 2^32 fall."""
        span = self._cells.span(bucket)
        ends = self._cells.ends[span]
        cells: NDArray[np.int64] = span.start + ends.searchsorted(places, "right")
        return cells


class _Guide(NamedTuple):
    """Where to begin the search for the cell of a salt, for every split bucket."""

    cells: NDArray[np.int64]
    starts: NDArray[np.int64]
    shifts: NDArray[np.int64]

    def of(self, split: NDArray[np.int64]) -> Iterable[tuple[int, int]]:
        """Each split bucket with its shift."""
        return zip(split.tolist(), self.shifts.tolist(), strict=True)


def _marks(shift: int) -> NDArray[np.int64]:
    """Where the parts of 2^32 begin that are told apart by all but the last `shift` bits."""
    return np.arange(2 ** (32 - shift), dtype=np.int64) << shift
