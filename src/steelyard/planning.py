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
from steelyard.routing_plan import WHOLE, Cell, Floats, RoutingPlan, checked_counts
from steelyard.validation import require_between, require_whole

__all__ = ["Cell", "Planner", "RoutingPlan"]

_ROUNDS = 32
"""How many choices a bucket that fits into one bin tries before it takes the emptiest."""

_NEARLY = 1 + 1e-9
"""Room that is missing by rounding only is not missing: the same counts give the same plan."""


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
        decay: float = 0.5,
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
        whole = last.bins_of[last.starts[:-1]].astype(np.int64)
        split: dict[int, dict[int, float]] = {}
        by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]

        is_heavy = counts[by_count] > fair.max() * _NEARLY
        left = fair.copy()
        heavy = {
            bucket: self._fill(bucket, counts[bucket], left, last)
            for bucket in by_count[is_heavy].tolist()
        }
        left += self.epsilon * fair
        fitting = by_count[~is_heavy]
        bulky = counts[fitting] > fair.max() / 4
        for group in (fitting[bulky], fitting[~bulky]):
            self._place_group(group, counts, left, whole, split, last)
        _unsplit(counts, left, whole, split)
        return whole, heavy | split

    def _place_group(
        self,
        group: NDArray[np.int64],
        counts: Floats,
        left: Floats,
        whole: NDArray[np.int64],
        split: dict[int, dict[int, float]],
        last: RoutingPlan,
    ) -> None:
        """Place buckets that fit into one bin, given in falling order of their counts."""
        was_split = last.copies[group] > 1
        stranded = self._settle(group[~was_split], counts, left, whole, whole[group[~was_split]])
        new = [
            bucket
            for bucket in group[was_split].tolist()
            if not _keep(bucket, counts[bucket], left, split, last)
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
                split[bucket] = _emptiest_first(counts[bucket], left)

    def _fill(self, bucket: int, count: float, left: Floats, last: RoutingPlan) -> dict[int, float]:
        """Fill the bins of a heavy bucket one after the other; takes from `left`."""
        cells: dict[int, float] = {}
        had = [cell.bin for cell in last.cells(bucket)]
        walk = (self._first[bucket] + self._step[bucket] * np.arange(self.bins)) % self.bins
        for where in had + walk.tolist():
            if left[where] <= 0:
                continue
            cells[where] = min(left[where], count)
            left[where] -= cells[where]
            count -= cells[where]
            if count <= 0:
                break
        return cells

    def _settle(
        self,
        group: NDArray[np.int64],
        counts: Floats,
        left: Floats,
        whole: NDArray[np.int64],
        proposal: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Each bin takes those that propose to it while they fit; return the others, in order."""
        by_bin = np.argsort(proposal, kind="stable")
        bins, sizes = proposal[by_bin], counts[group[by_bin]]
        running = sizes.cumsum()
        first = np.searchsorted(bins, bins)
        running -= running[first] - sizes[first]
        fits = running <= left[bins] * _NEARLY
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
        split = {bucket: _worth_having(amounts) for bucket, amounts in split.items()}
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


def _keep(
    bucket: int,
    count: float,
    left: Floats,
    split: dict[int, dict[int, float]],
    last: RoutingPlan,
) -> bool:
    """Put a bucket that was split into the same bins again, if they have room."""
    amounts = {cell.bin: cell.weight * count for cell in last.cells(bucket)}
    rounding = 2 * count / WHOLE  # the ends of a cell are rounded to parts of the bucket
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


def _worth_having(amounts: Mapping[int, float]) -> dict[int, float]:
    """Without the cells that are too small to get any message."""
    least = sum(amounts.values()) * 4 / WHOLE
    return {where: amount for where, amount in amounts.items() if amount > least}


def _emptiest_first(count: float, left: Floats) -> dict[int, float]:
    """Spread `count` over the bins with the most room, as few as can be; takes from `left`."""
    cells: dict[int, float] = {}
    for where in np.argsort(-left, kind="stable").tolist():
        amount = min(count, max(left[where], 0.0))
        if amount <= 0:
            break
        cells[where] = amount
        left[where] -= amount
        count -= amount
    if not cells:  # only rounding errors come here
        cells[int(left.argmax())] = count
    return cells


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
