"""Plan the bins of many messages at once: apply the PoRC rule to counts of messages by bucket.

Counts of messages per bucket enter; a `RoutingPlan` leaves. A plan is a pure function of the
counts and the previous plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.hashing import MOST_BINS, coprime_steps, mix64, seed_mask
from steelyard.plans.bucket_counts import Floats, checked_counts
from steelyard.plans.cells import WHOLE
from steelyard.plans.routing_plan import RoutingPlan
from steelyard.validation import require_between, require_whole

_CHOICES_TRIED = 32
"""The number of choices that a bucket that fits into one bin tries before the emptiest bin."""

_NEARLY = 1 + 1e-9
"""Factor by which the room of a bin grows, so that rounding errors cannot change a plan."""

_SMALLEST_WEIGHT = 4 / WHOLE
"""The planner creates no cell with this weight or less, because it would get no message."""

_ROUNDING = 16 / WHOLE
"""The weights of cells are rounded, so the cells that fill a bin may add up to more than its room.
The excess is less than this fraction of the stream, regardless of the number of buckets."""


class Planner:
    """Turn counts per bucket into plans; each plan changes as little as the balance allows.

    No bin gets more than `(1 + epsilon)` times its share of the stream. The shares are equal, or
    proportional to `capacities`.

    A bucket that fits into one bin goes whole to the first of its choices with room; larger
    buckets choose first. It is split only if no bin has room for it. A bucket that is too large
    for one bin is split: it fills the bins in its sequence of choices, each up to its share
    without epsilon. The rest of the room is left for light buckets. A bucket stays on the bins of
    the previous plan while it fits there, but the weights of a split bucket may change.

    Args:
        bins: The number of bins.
        epsilon: No bin gets more than `(1 + epsilon)` times its share.
        buckets: The number of buckets that keys are hashed into.
        capacities: For each bin a number in proportion to its share; None for equal shares.
        decay: The weight of all earlier counts when new ones arrive; 0 forgets them.

    >>> planner = Planner(bins=4, buckets=8)
    >>> plan = planner.update([60, 1, 1, 1, 1, 1, 1, 1])
    >>> plan.splits
    {0: [...]}
    >>> float(plan.shares.max().round(3))
    0.25
    """

    def __init__(
        self,
        bins: int,
        epsilon: float = 0.01,
        buckets: int = 8192,
        capacities: Sequence[float] | NDArray[np.floating] | None = None,
        *,
        decay: float = 0.2,
    ) -> None:
        require_whole("bins", bins, least=1, most=MOST_BINS)
        require_between("epsilon", epsilon, above=0, most=10)
        require_whole("buckets", buckets, least=1, most=MOST_BINS)
        require_between("decay", decay, least=0, most=1)
        if buckets < bins:
            raise ValueError(
                f"buckets must be at least the number of bins, {bins}, or bins stay empty; "
                f"got {buckets}"
            )
        self.bins = int(bins)
        self.epsilon = float(epsilon)
        self.buckets = int(buckets)
        self.capacities = _checked_capacities(capacities, bins)
        self.decay = float(decay)
        self._counts: Floats = np.zeros(buckets)
        self._plan: RoutingPlan | None = None
        self._share: Floats = self.capacities / self.capacities.sum()
        mixed = mix64(np.arange(buckets, dtype=np.uint64) ^ seed_mask(0))
        fraction = (mixed >> np.uint64(32)) / 2**32
        self._first = np.minimum(self._share.cumsum().searchsorted(fraction, "right"), bins - 1)
        steps = coprime_steps(bins)
        self._step = steps[(mixed & np.uint64(2**32 - 1)) % np.uint64(steps.size)].astype(np.int64)

    @property
    def plan(self) -> RoutingPlan:
        """The last plan; before the first update, every bucket goes to its first choice."""
        if self._plan is None:
            return self._as_plan(self._first, {}, self._counts, 0)
        return self._plan

    def update(self, counts: ArrayLike) -> RoutingPlan:
        """Return a plan for a stream with these counts per bucket.

        The version grows by one if the cells differ from those of the last plan.
        """
        self._counts = self._counts * self.decay + checked_counts(counts, self.buckets)
        last = self.plan
        whole, split = self._place(self._counts, last)
        plan = self._as_plan(whole, split, self._counts, last.version)
        if plan != last:
            plan = replace(plan, version=last.version + 1)
        self._plan = plan
        return plan

    def save(self) -> dict[str, Any]:
        """Return the settings, the counts and the last plan, ready for JSON."""
        return {
            "bins": self.bins,
            "epsilon": self.epsilon,
            "buckets": self.buckets,
            "capacities": self.capacities.tolist(),
            "decay": self.decay,
            "counts": self._counts.tolist(),
            "plan": None if self._plan is None else self._plan.to_json(),
        }

    @property
    def counts(self) -> Floats:
        """The messages by bucket that the last plan was made for, earlier counts decayed."""
        return self._counts

    @classmethod
    def resume(cls, saved: Mapping[str, Any]) -> Self:
        """Return a planner in exactly the state that `save` returned."""
        settings = ("bins", "epsilon", "buckets", "capacities", "decay")
        planner = cls(**{name: saved[name] for name in settings})
        planner._counts = checked_counts(saved["counts"], planner.buckets)
        if saved["plan"] is not None:
            plan = RoutingPlan.from_json(saved["plan"])
            if (plan.bins, plan.buckets) != (planner.bins, planner.buckets):
                raise ValueError(
                    f"a planner for {planner.bins} bins and {planner.buckets} buckets cannot "
                    f"resume a plan for {plan.bins} bins and {plan.buckets} buckets"
                )
            planner._plan = replace(plan, counts=planner._counts, fair=planner._share)
        return planner

    def _place(
        self, counts: Floats, last: RoutingPlan
    ) -> tuple[NDArray[np.int64], dict[int, dict[int, float]]]:
        """Return the bin of every whole bucket, and the amounts by bin of every split bucket."""
        fair = self._share * counts.sum()
        rounding = _ROUNDING * counts.sum()
        whole = last.bins_of[last.starts[:-1]].astype(np.int64)
        split: dict[int, dict[int, float]] = {}
        by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]

        is_heavy = counts[by_count] > fair.max() * _NEARLY
        left = fair.copy()
        heavy = {
            bucket: _fill(counts[bucket], self._candidates(bucket, last), left)
            for bucket in by_count[is_heavy].tolist()
        }
        left += np.maximum(self.epsilon * fair, rounding)
        fitting = by_count[~is_heavy]
        bulky = counts[fitting] > fair.max() / 4
        for group in (fitting[bulky], fitting[~bulky]):
            self._place_group(group, counts, left, whole, split, last, rounding)
        _unsplit(counts, left + rounding / 2, whole, split)
        return whole, heavy | split

    def _place_group(
        self,
        group: NDArray[np.int64],
        counts: Floats,
        left: Floats,
        whole: NDArray[np.int64],
        split: dict[int, dict[int, float]],
        last: RoutingPlan,
        rounding: float,
    ) -> None:
        """Place buckets that fit into one bin, given in descending order of their counts."""
        was_split = last.copies[group] > 1
        stay, were_split = group[~was_split], group[was_split].tolist()
        stranded = self._settle(stay, counts, left, whole, whole[stay], rounding)
        new = [
            bucket
            for bucket in were_split
            if not _keep(bucket, counts[bucket], left, split, last, rounding)
        ]
        stranded = np.union1d(stranded, np.array(new, np.int64))
        stranded = stranded[np.argsort(-counts[stranded], kind="stable")]
        for attempt in range(_CHOICES_TRIED):
            if not stranded.size:
                return
            choice = (self._first[stranded] + self._step[stranded] * attempt) % self.bins
            stranded = self._settle(stranded, counts, left, whole, choice)
        for bucket in stranded.tolist():
            emptiest = int(left.argmax())
            if counts[bucket] <= left[emptiest]:
                left[emptiest] -= counts[bucket]
                whole[bucket] = emptiest
            else:
                by_room = np.argsort(-left, kind="stable").tolist()
                split[bucket] = _fill(counts[bucket], by_room, left)

    def _candidates(self, bucket: int, last: RoutingPlan) -> list[int]:
        """Return the bucket's bins in the last plan, then all bins in the order of its choices."""
        previous = [cell.bin for cell in last.cells(bucket)]
        choices = (self._first[bucket] + self._step[bucket] * np.arange(self.bins)) % self.bins
        return [*previous, *choices.tolist()]

    def _settle(
        self,
        group: NDArray[np.int64],
        counts: Floats,
        left: Floats,
        whole: NDArray[np.int64],
        proposal: NDArray[np.int64],
        rounding: float = 0.0,
    ) -> NDArray[np.int64]:
        """Put each bucket into its proposed bin while there is room; return the others in order."""
        by_bin = np.argsort(proposal, kind="stable")
        bins, sizes = proposal[by_bin], counts[group[by_bin]]
        running = sizes.cumsum()
        first = np.searchsorted(bins, bins)
        running -= running[first] - sizes[first]
        fits = running <= left[bins] * _NEARLY + rounding
        whole[group[by_bin[fits]]] = bins[fits]
        left -= np.bincount(bins[fits], sizes[fits], self.bins)
        return group[np.sort(by_bin[~fits])]

    def _as_plan(
        self,
        whole: NDArray[np.int64],
        split: Mapping[int, Mapping[int, float]],
        counts: Floats,
        version: int,
    ) -> RoutingPlan:
        copies = np.ones(self.buckets, np.int64)
        copies[list(split)] = [len(amounts) for amounts in split.values()]
        starts = np.concatenate(([0], copies.cumsum()))
        bins_of = np.repeat(whole, copies).astype(np.int32)
        ends = np.full(bins_of.size, WHOLE, np.int64)
        for bucket, amounts in split.items():
            span = slice(starts[bucket], starts[bucket + 1])
            parts = np.array(list(amounts.values()))
            bins_of[span] = list(amounts)
            ends[span] = np.rint(parts.cumsum() / parts.sum() * WHOLE)
        plan = RoutingPlan(
            self.bins, starts, bins_of, ends, self._share, version, counts, self._share
        )
        return replace(plan, shares=plan.shares_of(counts))


def _fill(count: float, order: Sequence[int], left: Floats) -> dict[int, float]:
    """Split a bucket: fill one bin after the other, and subtract the amounts from `left`."""
    amounts: dict[int, float] = {}
    least = count * _SMALLEST_WEIGHT
    for where in order:
        if left[where] > least:
            amounts[where] = min(left[where], count)
            left[where] -= amounts[where]
            count -= amounts[where]
            if count <= least:
                break
    return amounts


def _keep(
    bucket: int,
    count: float,
    left: Floats,
    split: dict[int, dict[int, float]],
    last: RoutingPlan,
    rounding: float,
) -> bool:
    """Put a split bucket into its bins of the last plan if they have room; return whether."""
    amounts = {cell.bin: cell.weight * count for cell in last.cells(bucket)}
    if any(amount > left[where] + rounding for where, amount in amounts.items()):
        return False
    split[bucket] = amounts
    for where, amount in amounts.items():
        left[where] -= amount
    return True


def _unsplit(
    counts: Floats, left: Floats, whole: NDArray[np.int64], split: dict[int, dict[int, float]]
) -> None:
    """Merge split buckets into one of their bins with room, until no more can be merged."""
    searching = True
    while searching:
        searching = False
        for bucket, amounts in list(split.items()):
            for where, amount in amounts.items():
                if counts[bucket] - amount <= left[where]:
                    for other, freed in amounts.items():
                        left[other] += freed
                    left[where] -= counts[bucket]
                    whole[bucket] = where
                    del split[bucket]
                    searching = True
                    break


def _checked_capacities(capacities: ArrayLike | None, bins: int) -> Floats:
    if capacities is None:
        return np.ones(bins)
    numbers = np.asarray(capacities, np.float64)
    if numbers.shape != (bins,):
        raise ValueError(
            f"capacities must have one number for each of {bins} bins, got shape {numbers.shape}"
        )
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        bad = int(np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))[0])
        raise ValueError(f"capacities must be positive numbers, got {numbers[bad]} at {bad}")
    return numbers
