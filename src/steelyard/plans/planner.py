"""Plan for many messages at once: the rule of PoRC on the counts of buckets of keys.

Counts of messages per bucket enter; a `RoutingPlan` leaves. A plan is a pure function of the
counts and of the plan before it.
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

_ROUNDS = 32
"""How many choices a bucket that fits into one bin tries before it takes the emptiest."""

_NEARLY = 1 + 1e-9
"""Room that is missing by rounding only is not missing: the same counts give the same plan."""

_WORTH_HAVING = 4 / WHOLE
"""A cell with no more than this part of its bucket is too small to get any message."""

_ROUNDING = 16 / WHOLE
"""The weights of cells are rounded, so the cells that fill a bin may add up to more than its room.
The excess is less than this part of the stream, however many buckets they are of."""


class Planner:
    """Turns counts per bucket into plans, each as close to the one before as balance allows.

    A bin may get `(1 + epsilon)` times its share of the stream: an equal share, or one in
    proportion to `capacities`. Buckets that fit into one bin go whole to the first of their
    choices with room, the larger ones first. Those that do not fill one bin after the other along
    their choices, up to the plain share, so that the slack is left to the light ones. A bucket
    stays on the bins where the last plan put it while it fits there; how a split one is shared
    out among its bins may change.

    Counts of earlier updates fade by `decay` at each new one (0 forgets them at once).

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
        """The last plan; before any update, every bucket whole on its first choice."""
        if self._plan is None:
            return self._as_plan(self._first, {}, self._counts, 0)
        return self._plan

    def update(self, counts: ArrayLike) -> RoutingPlan:
        """Plan for a stream with these counts per bucket.

        The version grows by one if the plan has other cells than the last.
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
        """The settings, the counts and the last plan, ready for JSON."""
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
        """What the last plan was made for: messages by bucket, those of earlier ones decayed."""
        return self._counts

    @classmethod
    def resume(cls, saved: Mapping[str, Any]) -> Self:
        """A planner that goes on exactly where the saved one stopped."""
        settings = ("bins", "epsilon", "buckets", "capacities", "decay")
        planner = cls(**{name: saved[name] for name in settings})
        planner._counts = checked_counts(saved["counts"], planner.buckets)
        if saved["plan"] is not None:
            plan = RoutingPlan.from_json(saved["plan"])
            if (plan.bins, plan.buckets) != (planner.bins, planner.buckets):
                raise ValueError(
                    f"a planner for {planner.bins} bins and {planner.buckets} buckets cannot "
                    f"resume a plan for {plan.bins} and {plan.buckets}"
                )
            planner._plan = replace(plan, counts=planner._counts, fair=planner._share)
        return planner

    def _place(
        self, counts: Floats, last: RoutingPlan
    ) -> tuple[NDArray[np.int64], dict[int, dict[int, float]]]:
        """The bin of every whole bucket, and the bins with amounts of every split one."""
        fair = self._share * counts.sum()
        rounding = _ROUNDING * counts.sum()
        whole = last.bins_of[last.starts[:-1]].astype(np.int64)
        split: dict[int, dict[int, float]] = {}
        by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]

        is_heavy = counts[by_count] > fair.max() * _NEARLY
        left = fair.copy()
        heavy = {
            bucket: _fill(counts[bucket], self._walk(bucket, last), left)
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
        """Place buckets that fit into one bin, given in falling order of their counts."""
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
        for attempt in range(_ROUNDS):
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

    def _walk(self, bucket: int, last: RoutingPlan) -> list[int]:
        """The bins that a bucket has, and then all in the order of its choices."""
        had = [cell.bin for cell in last.cells(bucket)]
        walk = (self._first[bucket] + self._step[bucket] * np.arange(self.bins)) % self.bins
        return [*had, *walk.tolist()]

    def _settle(
        self,
        group: NDArray[np.int64],
        counts: Floats,
        left: Floats,
        whole: NDArray[np.int64],
        proposal: NDArray[np.int64],
        rounding: float = 0.0,
    ) -> NDArray[np.int64]:
        """Each bin takes those that propose to it while they fit; return the others, in order."""
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
    """Split a bucket: fill one bin after the other; takes from `left`."""
    amounts: dict[int, float] = {}
    least = count * _WORTH_HAVING
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
    """Put a bucket that was split into the same bins again, if they have room."""
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
    """Make buckets whole that one of their bins can take, until there are no more of them."""
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
            f"capacities must be one number for each of {bins} bins, got shape {numbers.shape}"
        )
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        bad = int(np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))[0])
        raise ValueError(f"capacities must be positive numbers, got {numbers[bad]} at {bad}")
    return numbers
