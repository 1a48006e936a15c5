"""Where every bucket of keys goes: a table that routes many messages at once.

Buckets and salts enter; bins leave. A plan is a value: it needs no state at the source, does not
depend on the order of the messages, and takes a few kilobytes to send.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.plans.description import PlanDescription, describe

Floats = NDArray[np.float64]

WHOLE = 2**32
"""The weights of a bucket's cells are parts of this."""


@dataclass(frozen=True)
class Cell:
    """A bin that takes `weight` of a bucket's messages."""

    bin: int
    weight: float


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


@dataclass(frozen=True, eq=False)
class RoutingPlan:
    """For every bucket the bins that its messages go to.

    `bins_of[i]` takes the part of its bucket's messages whose salt falls below `ends[i]` (of
    2^32) and not below the end before it; the cells of bucket b are those from `starts[b]` to
    `starts[b + 1]`. Two plans are equal when they have the same cells.

    >>> plan = RoutingPlan.from_cells(2, [[(0, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
    >>> plan.splits
    {1: [Cell(bin=0, weight=0.25), Cell(bin=1, weight=0.75)]}
    """

    bins: int
    starts: NDArray[np.int64]
    bins_of: NDArray[np.int32]
    ends: NDArray[np.int64]
    shares: Floats = field(repr=False)
    """The share of the stream that each bin gets if it goes on as it was counted."""
    version: int = 0
    counts: Floats | None = field(default=None, repr=False)
    """The counts per bucket that the plan was made for, if they are known."""
    fair: Floats | None = field(default=None, repr=False)
    """The share of the stream that each bin should get: equal, or as the capacities are."""

    @classmethod
    def from_cells(cls, bins: int, cells: Sequence[Sequence[tuple[int, int]]]) -> Self:
        """A plan from the (bin, end) pairs of each bucket, in the order of the ends."""
        flat = [cell for bucket in cells for cell in bucket]
        return cls(
            bins=bins,
            starts=np.cumsum([0, *map(len, cells)], dtype=np.int64),
            bins_of=np.array([b for b, _ in flat], np.int32),
            ends=np.array([end for _, end in flat], np.int64),
            shares=np.zeros(bins),
        )

    @property
    def buckets(self) -> int:
        """How many buckets the keys are hashed into."""
        return self.starts.size - 1

    @property
    def copies(self) -> NDArray[np.int64]:
        """For every bucket the number of bins that it goes to."""
        return np.diff(self.starts)

    @property
    def weights(self) -> Floats:
        """For every cell its part of its bucket."""
        before = np.concatenate(([0], self.ends[:-1]))
        before[self.starts[:-1]] = 0
        parts: Floats = (self.ends - before) / WHOLE
        return parts

    @property
    def splits(self) -> dict[int, list[Cell]]:
        """The buckets that go to more than one bin, with their cells."""
        return {int(b): self.cells(int(b)) for b in np.flatnonzero(self.copies > 1)}

    def cells(self, bucket: int) -> list[Cell]:
        """Where a bucket's messages go."""
        span = self._span(bucket)
        ends = self.ends[span]
        weights = np.diff(ends, prepend=0) / WHOLE
        return [
            Cell(int(b), float(weight))
            for b, weight in zip(self.bins_of[span], weights, strict=True)
        ]

    def route(self, buckets: NDArray[np.integer], salts: NDArray[np.integer]) -> NDArray[np.int32]:
        """The bins of messages of these buckets.

        A salt is a uniform 64-bit number, signed or not, that tells messages of one bucket apart:
        a hash of what differs between them, or `steelyard.hashing.spread` of running numbers. Its
        high 32 bits decide between the cells of a split bucket; equal salts stay together.

        >>> plan = RoutingPlan.from_cells(2, [[(0, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
        >>> plan.route(np.array([0, 1, 1]), np.array([7, 7, 2**63], np.uint64))
        array([0, 0, 1], dtype=int32)
        """
        buckets, salts = np.asarray(buckets), np.asarray(salts)
        if buckets.dtype.kind not in "iu" or salts.dtype not in (np.uint64, np.int64):
            raise TypeError(
                "route needs whole numbers of buckets and 64-bit salts, "
                f"got {buckets.dtype} and {salts.dtype}"
            )
        if buckets.size and buckets.min() < 0:
            raise IndexError(f"buckets are numbered from 0, got {buckets.min()}")
        routed = self._first_cell.take(buckets)
        split = np.flatnonzero(routed < 0)
        if split.size:
            position = salts[split].view(np.uint64) >> np.uint64(32)
            position = position.view(np.int64)
            rank = ~routed[split]
            guide = self._guide
            cell = guide.cells.take(guide.starts[rank] + (position >> guide.shifts[rank]))
            behind = np.flatnonzero(position >= self.ends.take(cell))
            while behind.size:
                cell[behind] += 1
                behind = behind[position[behind] >= self.ends.take(cell[behind])]
            routed[split] = self.bins_of.take(cell)
        return routed

    def bins_by_bucket(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where the bins of each bucket start, and the bins: each once, even with two cells.

        >>> plan = RoutingPlan.from_cells(2, [[(1, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
        >>> plan.bins_by_bucket()
        (array([0, 1, 3], dtype=int32), array([1, 0, 1], dtype=int32))
        """
        owner = np.repeat(np.arange(self.buckets), self.copies)
        owner, bins = np.unique(np.stack([owner, self.bins_of]), axis=1)
        starts = owner.searchsorted(np.arange(self.buckets + 1))
        return starts.astype(np.int32), bins.astype(np.int32)

    def tables(self) -> "Tables":
        """The plan as arrays in which a bin can be looked up, for those who cannot call `route`."""
        split = self._split_buckets
        if not split.size:
            none = np.empty(0, np.int32)
            return Tables(self._first_cell, none, none, none, none.astype(np.int64), none, 0)
        guide = self._guide
        own = np.repeat(self.copies > 1, self.copies)  # cells of split buckets
        number = np.cumsum(own) - 1
        rank = np.repeat(np.arange(split.size), self.copies[split])
        # The most cells that begin within one part of the guide: so many steps lead to any.
        last = [self._cells_at(b, _marks(shift) + 2**shift - 1) for b, shift in guide.of(split)]
        steps = int((np.concatenate(last) - guide.cells).max())
        ends = (rank << 32) + self.ends[own]
        ends = np.append(ends, np.full(steps, 2**62))
        return Tables(
            self._first_cell,
            number[guide.cells].astype(np.int32),
            guide.starts.astype(np.int32),
            guide.shifts.astype(np.int32),
            ends,
            self.bins_of[own],
            steps,
        )

    @cached_property
    def _split_buckets(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.copies > 1)

    @cached_property
    def _first_cell(self) -> NDArray[np.int32]:
        """The bin of a whole bucket; ~rank of a split one."""
        table = self.bins_of[self.starts[:-1]].copy()
        table[self._split_buckets] = ~np.arange(self._split_buckets.size, dtype=np.int32)
        return table

    @cached_property
    def _guide(self) -> "_Guide":
        """By rank and the leading bits of a salt, the first cell that it may fall into.

        Four to eight entries for each cell, so that a step or two lead to the right one.
        """
        split = self._split_buckets
        shifts = 32 - np.frexp(4 * self.copies[split])[1].astype(np.int64)
        starts = np.concatenate(([0], (2 ** (32 - shifts)).cumsum()[:-1]))
        cells = [
            self._cells_at(bucket, _marks(shift))
            for bucket, shift in zip(split.tolist(), shifts.tolist(), strict=True)
        ]
        return _Guide(np.concatenate(cells), starts, shifts)

    def _cells_at(self, bucket: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of a bucket in which these places between 0 and 2^32 fall."""
        span = self._span(bucket)
        cells: NDArray[np.int64] = span.start + self.ends[span].searchsorted(places, "right")
        return cells

    def with_whole(self, buckets: Iterable[int]) -> "RoutingPlan":
        """The same, but those of these buckets that are split go whole to their largest cell."""
        split = set(self._split_buckets.tolist())
        kept = np.ones(self.bins_of.size, bool)
        ends, weights = self.ends.copy(), self.weights
        for bucket in split.intersection(buckets):
            span = self._span(bucket)
            kept[span] = False
            largest = int(span.start + weights[span].argmax())
            kept[largest], ends[largest] = True, WHOLE
        copies = np.add.reduceat(kept, self.starts[:-1], dtype=np.int64)
        starts = np.concatenate(([0], copies.cumsum()))
        plan = replace(self, starts=starts, bins_of=self.bins_of[kept], ends=ends[kept])
        return plan if self.counts is None else replace(plan, shares=plan.shares_of(self.counts))

    def shares_of(self, counts: ArrayLike) -> Floats:
        """The share of each bin in a stream with these counts per bucket."""
        weights = checked_counts(counts, self.buckets)
        total = weights.sum()
        per_cell = np.repeat(weights, self.copies) * self.weights
        shares: Floats = np.bincount(self.bins_of, per_cell, self.bins) / (total or 1)
        return shares

    def describe(self) -> PlanDescription:
        """The hot buckets, the largest bin with and without the plan, and the copies of keys.

        All of it for the counts that the plan was made for. Only a planner's plan knows them.

        >>> from steelyard.plans.planner import Planner
        >>> print(Planner(bins=4, buckets=8).update([60, 1, 1, 1, 1, 1, 1, 1]).describe())
        4 workers, 8 buckets of keys
        largest worker   1.000 of its fair share (3.642 by key grouping)
        copies of a key  1.375 on average (11 copies of 8 buckets)
        hot              1 bucket is split
          bucket       0  89.55 % of the stream, on 4 workers
        """
        if self.counts is None or self.fair is None:
            raise ValueError(
                "a plan that was read from JSON or made from cells does not know the counts it was "
                "made for; describe the plan that a Planner, or steelyard.plan, gives"
            )
        if not self.counts.any():
            raise ValueError(
                "this plan was made before anything was counted; give counts to its planner's "
                "update and describe the plan that it returns"
            )
        return describe(self.counts, self.copies, self.shares, self.fair)

    def moved_from(self, other: "RoutingPlan", counts: ArrayLike) -> float:
        """The share of a stream with these counts that has to change bins after `other`.

        Messages of one bucket stand for each other: what matters is how much of it each bin gets.
        """
        weights = checked_counts(counts, self.buckets)
        if other.buckets != self.buckets:
            raise ValueError(
                f"plans over {self.buckets} and {other.buckets} buckets cannot be compared"
            )
        are_whole = (self.copies == 1) & (other.copies == 1)
        same = self.bins_of[self.starts[:-1]] == other.bins_of[other.starts[:-1]]
        stayed = weights[are_whole & same].sum()
        for bucket in np.flatnonzero(~are_whole & (weights > 0)).tolist():
            theirs = {cell.bin: cell.weight for cell in other.cells(bucket)}
            both = (min(c.weight, theirs.get(c.bin, 0.0)) for c in self.cells(bucket))
            stayed += weights[bucket] * sum(both)
        total = weights.sum()
        return float(1 - stayed / total) if total else 0.0

    def _span(self, bucket: int) -> slice:
        return slice(self.starts[bucket], self.starts[bucket + 1])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RoutingPlan)
            and self.bins == other.bins
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.bins_of, other.bins_of)
            and np.array_equal(self.ends, other.ends)
        )

    def __hash__(self) -> int:
        return hash((self.bins, self.bins_of.tobytes(), self.ends.tobytes()))

    def to_json(self) -> str:
        """The plan as JSON text."""
        return json.dumps(self.fields(), separators=(",", ":"))

    def fields(self) -> dict[str, Any]:
        """Ready for JSON: one number for a whole bucket, [bin, end, bin, end, ...] for others."""
        pairs = np.stack([self.bins_of, self.ends], axis=1).ravel().tolist()
        places = (2 * self.starts).tolist()
        buckets = [
            where if where >= 0 else pairs[start:stop]
            for where, (start, stop) in zip(
                self._first_cell.tolist(), pairwise(places), strict=True
            )
        ]
        return {
            "version": self.version,
            "bins": self.bins,
            "buckets": buckets,
            "shares": self.shares.tolist(),
        }

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The plan that `to_json` wrote."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise ValueError(f"this is not the JSON of a routing plan: {error!r}") from error
        return cls.from_fields(fields)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """The plan whose `fields` these are."""
        try:
            cells = [
                (where, WHOLE) if isinstance(where, int) else where for where in fields["buckets"]
            ]
            bins, version = fields["bins"], fields["version"]
            # Every source task reads a plan: nothing here is done bucket by bucket but the above.
            numbers = np.array(list(map(len, cells)), np.int64)
            flat = np.array(list(chain.from_iterable(cells)))
            _check_cells(bins, numbers, flat)
            starts = np.concatenate(([0], np.cumsum(numbers // 2)))
            shares = np.array(fields["shares"], np.float64).reshape(bins)
            bins_of = flat[::2].astype(np.int32)
            return cls(bins, starts, bins_of, flat[1::2].copy(), shares, int(version))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"this is not the JSON of a routing plan: {error!r}") from error


def _check_cells(bins: int, numbers: NDArray[np.int64], flat: NDArray[np.int64]) -> None:
    """Refuse what are no cells: for every bucket so many numbers, bins and ends in turns."""
    if not isinstance(bins, int) or flat.dtype != np.int64:
        raise ValueError("bins and ends of cells must be whole numbers")
    if (numbers % 2 != 0).any() or (numbers == 0).any():
        raise ValueError("a bucket needs a bin and an end for each of its cells")
    owners = np.repeat(np.arange(numbers.size), numbers // 2)
    outside = np.flatnonzero((flat[::2] < 0) | (flat[::2] >= bins))
    if outside.size:
        raise ValueError(f"bucket {owners[outside[0]]} names a bin outside 0 to {bins - 1}")
    ends, stops = flat[1::2], np.cumsum(numbers // 2)
    starts = np.concatenate(([0], ends[:-1]))
    starts[stops[:-1]] = 0
    wrong = starts >= ends
    wrong[stops - 1] |= ends[stops - 1] != WHOLE
    if wrong.any():
        bucket = owners[np.flatnonzero(wrong)[0]]
        raise ValueError(f"the cells of bucket {bucket} do not end, rising, at {WHOLE}")


def checked_counts(counts: ArrayLike, buckets: int) -> Floats:
    """Counts per bucket as floats; refused if they are not `buckets` numbers from 0 to 1e300."""
    numbers = np.asarray(counts, np.float64)
    if numbers.shape != (buckets,):
        raise ValueError(
            f"counts must be one number for each of {buckets} buckets, got shape {numbers.shape}"
        )
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1e300)))
    if wrong.size:
        raise ValueError(
            f"counts must be numbers from 0 to 1e300, got {numbers[wrong[0]]} at {wrong[0]}"
        )
    return numbers
