"""The routing plan: a table that gives the bins of many messages at once.

Buckets and salts enter; bins leave. A plan is a value: it needs no state at the source, does not
depend on the order of the messages, and takes a few kilobytes to send.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.hashing import coprime_steps, mix64
from steelyard.plans.bucket_counts import Floats, checked_counts
from steelyard.plans.cells import WHOLE, Cell, Cells, cells_from_json, cells_to_json
from steelyard.plans.description import KeyFacts, PlanDescription, describe
from steelyard.plans.lookup import Lookup
from steelyard.plans.routing_table import RoutingTable, routing_table
from steelyard.showing import card, counted


@dataclass(frozen=True, eq=False, repr=False)
class RoutingPlan:
    """For every bucket the bins that its messages go to.

    The cells of bucket b are those from `starts[b]` to `starts[b + 1]`. A message of the bucket
    goes to `bins_of[i]` for the first cell i whose end, `ends[i]`, is above the high 32 bits of
    the message's salt. Two plans are equal when they have the same cells.

    Args:
        bins: The number of bins.
        starts: The number of each bucket's first cell, and at the end the number of cells.
        bins_of: The bin of each cell.
        ends: The end of each cell, as a number out of 2^32.
        shares: The share of the stream that each bin gets while the stream stays as it was counted.
        version: The version of the plan; a planner counts it up when the cells change.
        counts: The counts per bucket that the plan was made for; None if they are unknown.
        fair: The share of the stream that each bin should get: equal, or proportional to
            capacities.
        key: The key that the plan was made for, as text; None if it is unknown. Calls with another
            key refuse the plan.
        facts: What `steelyard.plan` learned about the keys, for the description only.

    >>> plan = RoutingPlan.from_cells(2, [[(0, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
    >>> plan
    RoutingPlan(2 bins, 2 buckets, 1 split, version 0)
    >>> plan.splits
    {1: [Cell(bin=0, weight=0.25), Cell(bin=1, weight=0.75)]}
    """

    bins: int
    starts: NDArray[np.int64]
    bins_of: NDArray[np.int32]
    ends: NDArray[np.int64]
    shares: Floats
    version: int = 0
    counts: Floats | None = None
    fair: Floats | None = None
    key: tuple[str, ...] | None = None
    facts: KeyFacts | None = None

    @classmethod
    def from_cells(cls, bins: int, cells: Sequence[Sequence[tuple[int, int]]]) -> Self:
        """Create a plan from the (bin, end) pairs of each bucket, in the order of the ends."""
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
        """The number of buckets that keys are hashed into."""
        return self.starts.size - 1

    @property
    def copies(self) -> NDArray[np.int64]:
        """The number of bins of each bucket."""
        return np.diff(self.starts)

    @property
    def has_splits(self) -> bool:
        """Whether a bucket has more than one bin."""
        return self.bins_of.size > self.buckets

    @property
    def weights(self) -> Floats:
        """The weight of each cell: its fraction of its bucket's messages."""
        before = np.concatenate(([0], self.ends[:-1]))
        before[self.starts[:-1]] = 0
        parts: Floats = (self.ends - before) / WHOLE
        return parts

    @property
    def splits(self) -> dict[int, list[Cell]]:
        """The buckets with more than one bin, with their cells."""
        return {int(b): self.cells(int(b)) for b in np.flatnonzero(self.copies > 1)}

    def cells(self, bucket: int) -> list[Cell]:
        """Return the cells of a bucket."""
        span = self._cells.span(bucket)
        ends = self.ends[span]
        weights = np.diff(ends, prepend=0) / WHOLE
        return [
            Cell(int(b), float(weight))
            for b, weight in zip(self.bins_of[span], weights, strict=True)
        ]

    def route(self, buckets: NDArray[np.integer], salts: NDArray[np.integer]) -> NDArray[np.int32]:
        """Return the bins of messages with these buckets and salts.

        A salt is a uniform 64-bit number, signed or unsigned. It distinguishes messages of one
        bucket: a hash of their other columns, or `steelyard.hashing.spread` of running numbers.
        Its high 32 bits select a cell of a split bucket, so messages with equal salts go together.

        >>> plan = RoutingPlan.from_cells(2, [[(0, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
        >>> plan.route(np.array([0, 1, 1]), np.array([7, 7, 2**63], np.uint64))
        array([0, 0, 1], dtype=int32)
        """
        buckets, salts = np.asarray(buckets), np.asarray(salts)
        if buckets.dtype.kind not in "iu" or salts.dtype not in (np.uint64, np.int64):
            raise TypeError(
                "route needs `buckets` of an integer type and `salts` of a 64-bit integer type, "
                f"got {buckets.dtype} and {salts.dtype}"
            )
        if buckets.size and buckets.min() < 0:
            raise IndexError(f"`buckets` must be numbers from 0 on, got {buckets.min()}")
        return self._lookup.route(buckets, salts)

    def bins_by_bucket(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return where the bins of each bucket start, and the bins, each once per bucket.

        >>> plan = RoutingPlan.from_cells(2, [[(1, WHOLE)], [(0, WHOLE // 4), (1, WHOLE)]])
        >>> plan.bins_by_bucket()
        (array([0, 1, 3], dtype=int32), array([1, 0, 1], dtype=int32))
        """
        owner = np.repeat(np.arange(self.buckets), self.copies)
        owner, bins = np.unique(np.stack([owner, self.bins_of]), axis=1)
        starts = owner.searchsorted(np.arange(self.buckets + 1))
        return starts.astype(np.int32), bins.astype(np.int32)

    def table(
        self, labels: NDArray[np.integer] | None = None, steps: int | None = None
    ) -> RoutingTable:
        """Return the plan as one array, for a lookup in code that cannot call `route`.

        `labels` are numbers in place of those of the bins; `steps` is a number of steps that is
        enough for any plan with this number of bins.
        """
        numbers = np.arange(self.bins) if labels is None else labels
        return routing_table(self._cells, numbers, steps)

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self._cells)

    @property
    def _cells(self) -> Cells:
        return Cells(self.starts, self.bins_of, self.ends)

    def with_whole(self, buckets: Iterable[int]) -> "RoutingPlan":
        """Return a plan in which none of these buckets is split.

        A bucket that was split goes to the bin of its largest cell. Other buckets are unchanged.
        """
        split = set(self._lookup.split_buckets.tolist())
        kept = np.ones(self.bins_of.size, bool)
        ends, weights = self.ends.copy(), self.weights
        for bucket in split.intersection(buckets):
            span = self._cells.span(bucket)
            kept[span] = False
            largest = int(span.start + weights[span].argmax())
            kept[largest], ends[largest] = True, WHOLE
        copies = np.add.reduceat(kept, self.starts[:-1], dtype=np.int64)
        starts = np.concatenate(([0], copies.cumsum()))
        plan = replace(self, starts=starts, bins_of=self.bins_of[kept], ends=ends[kept])
        return plan if self.counts is None else replace(plan, shares=plan.shares_of(self.counts))

    def for_owners(self, owners: NDArray[np.integer], workers: int) -> "RoutingPlan":
        """Return the plan whose bins are the owners of the bins of this plan.

        The cells of a bucket that have the same owner become one cell, so a bucket has at most as
        many cells as there are workers.

        Args:
            owners: The owner of each bin.
            workers: The number of owners.

        >>> plan = RoutingPlan.from_cells(3, [[(2, WHOLE // 4), (0, WHOLE // 2), (1, WHOLE)]])
        >>> plan.for_owners(np.array([0, 0, 1]), 2).splits
        {0: [Cell(bin=0, weight=0.75), Cell(bin=1, weight=0.25)]}
        """
        starts = np.concatenate(([0], self.ends[:-1]))
        starts[self.starts[:-1]] = 0
        bucket = np.repeat(np.arange(self.buckets), self.copies)
        cells, cell = np.unique(bucket * workers + owners[self.bins_of], return_inverse=True)
        widths = np.bincount(cell, self.ends - starts).astype(np.int64)
        of, bins_of = np.divmod(cells, workers)
        return RoutingPlan(
            bins=workers,
            starts=of.searchsorted(np.arange(self.buckets + 1)),
            bins_of=bins_of.astype(np.int32),
            ends=widths.cumsum() - of * WHOLE,
            shares=np.bincount(owners, self.shares, workers).astype(np.float64),
            version=self.version,
            counts=self.counts,
        )

    def in_parts(self, parts: int) -> "RoutingPlan":
        """Return a plan that divides every whole bucket into equal parts, in different bins.

        Buckets that are split already are unchanged.

        Args:
            parts: The number of parts; at most one for each bin.

        >>> RoutingPlan.from_cells(4, [[(1, WHOLE)]]).in_parts(2).splits
        {0: [Cell(bin=1, weight=0.5), Cell(bin=2, weight=0.5)]}
        """
        parts = min(parts, self.bins)
        steps = coprime_steps(self.bins)
        step = steps[mix64(np.arange(self.buckets, dtype=np.uint64)) % np.uint64(steps.size)]
        is_whole = self.copies == 1
        copies = np.where(is_whole, parts, self.copies)
        starts = np.concatenate(([0], copies.cumsum()))
        bucket = np.repeat(np.arange(self.buckets), copies)
        part = np.arange(bucket.size) - starts[bucket]
        was = self.starts[bucket] + np.where(is_whole[bucket], 0, part)
        bins_of = self.bins_of[was] + np.where(is_whole[bucket], part * step[bucket], 0)
        ends = np.where(is_whole[bucket], (part + 1) * WHOLE // parts, self.ends[was])
        bins_of = (bins_of % self.bins).astype(np.int32)
        plan = replace(self, starts=starts, bins_of=bins_of, ends=ends)
        return plan if self.counts is None else replace(plan, shares=plan.shares_of(self.counts))

    def shares_of(self, counts: ArrayLike) -> Floats:
        """Return the share of each bin in a stream with these counts per bucket."""
        weights = checked_counts(counts, self.buckets)
        total = weights.sum()
        per_cell = np.repeat(weights, self.copies) * self.weights
        shares: Floats = np.bincount(self.bins_of, per_cell, self.bins) / (total or 1)
        return shares

    def describe(self) -> PlanDescription:
        """Describe the hot buckets, the largest bin with and without the plan, and the key copies.

        The numbers hold for the counts that the plan was made for. A plan has its counts only if
        a planner made it.

        >>> from steelyard.plans.planner import Planner
        >>> print(Planner(bins=4, buckets=8).update([60, 1, 1, 1, 1, 1, 1, 1]).describe())
        4 workers, 8 buckets of keys
        largest worker   1.000 of its fair share (3.642 by key grouping)
        copies of a key  1.375 on average (11 copies of 8 buckets)
        hot              1 bucket is split
          bucket 0   89.55 % of the stream, on 4 workers
        """
        if self.counts is None or self.fair is None:
            raise ValueError(
                "a plan that was read from JSON or made from cells has no counts to describe; "
                "describe a plan that Planner.update or steelyard.plan returned"
            )
        if not self.counts.any():
            raise ValueError(
                "this plan was made without counts; pass counts to Planner.update and describe "
                "the plan that it returns"
            )
        return describe(self.counts, self.copies, self.shares, self.fair, self.facts)

    def __repr__(self) -> str:
        bins, buckets = counted(self.bins, "bin"), counted(self.buckets, "bucket")
        split = np.count_nonzero(self.copies > 1)
        return f"RoutingPlan({bins}, {buckets}, {split:,} split, version {self.version})"

    def _repr_html_(self) -> str:
        """Return the description for a notebook; without counts, one line."""
        return self.describe()._repr_html_() if self._can_be_described else card(repr(self))

    @property
    def _can_be_described(self) -> bool:
        return self.counts is not None and self.fair is not None and bool(self.counts.any())

    def moved_from(self, other: "RoutingPlan", counts: ArrayLike) -> float:
        """Return the share of a stream with these counts that changes bins after plan `other`.

        Messages of one bucket are interchangeable: only the amount that each bin gets counts.
        """
        weights = checked_counts(counts, self.buckets)
        if other.buckets != self.buckets:
            raise ValueError(
                f"`other` must be a plan over {self.buckets} buckets, got one over {other.buckets}"
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
        """Return the plan as JSON text."""
        return json.dumps(self.fields(), separators=(",", ":"))

    def fields(self) -> dict[str, Any]:
        """Return the plan as a dictionary for JSON.

        A bucket with one cell is one number; others are lists [bin, end, bin, end, ...]. A plan of
        unknown key has no field `key`.
        """
        fields: dict[str, Any] = {
            "version": self.version,
            "bins": self.bins,
            "buckets": cells_to_json(self._cells),
            "shares": self.shares.tolist(),
        }
        return fields if self.key is None else {**fields, "key": list(self.key)}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the plan that `to_json` wrote."""
        try:
            fields = json.loads(text)
        except ValueError as error:
            raise ValueError(f"this is not the JSON of a routing plan: {error!r}") from error
        return cls.from_fields(fields)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Return the plan that `fields` wrote."""
        try:
            buckets, bins, version = fields["buckets"], fields["bins"], fields["version"]
            cells = cells_from_json(bins, buckets)
            shares = np.array(fields["shares"], np.float64).reshape(bins)
            return cls(bins, *cells, shares, int(version), key=_key_from(fields.get("key")))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"this is not the JSON of a routing plan: {error!r}") from error


def _key_from(names: object) -> tuple[str, ...] | None:
    """Return the key of a plan that was read from JSON."""
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"the key must be a list of texts, got {names!r}")
    return tuple(names)
