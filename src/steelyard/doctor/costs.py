"""What the ways to group would make of the counted keys.

Counts and workers enter; for each way the largest task, how much longer that takes than need be,
and the copies of keys leave.

Where a way sends a key by its hash or by the counts, the loads are computed from these. Where the
messages of a key part (salts, two choices, D-Choices), some drawn from the counts are routed one by
one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard import metrics, schemes
from steelyard.doctor.counts import BUCKETS, KeyCounts
from steelyard.hashing import mix64
from steelyard.plans import Planner

Floats = NDArray[np.float64]

EPSILON = 0.01

WAYS = ("kg", "sg", "salting", "pkg", "dchoices", "cg")
"""Key grouping, round robin, ten salts a key, two choices, D-Choices, consistent grouping."""

_ROUTED = 5_000_000
"""At most so many messages are routed one by one."""


@dataclass(frozen=True)
class Cost:
    """What a way to group makes of the data."""

    way: str
    largest_share: float
    """Of all messages: what the worker has that needs the longest."""
    slow_down: float
    """How long that one needs, against all of them with the work shared as they are fast."""
    copies: float
    """Workers that hold a key, on average over the keys."""
    hottest_copies: int
    """Workers that hold the hottest key."""


def slow_down(loads: ArrayLike, capacities: Floats) -> float:
    """The longest time of a worker against the time that all need together.

    >>> slow_down([6, 2], np.array([1.0, 1.0])), slow_down([6, 2], np.array([3.0, 1.0]))
    (1.5, 1.0)
    """
    ideal = np.sum(loads) / capacities.sum()
    return float(metrics.normalised_load(loads, capacities).max() / ideal)


def costs(
    counts: KeyCounts, workers: int, capacities: Sequence[float] | None = None, seed: int = 0
) -> Iterator[Cost]:
    """The cost of each of `WAYS`, one after the other.

    >>> counts = KeyCounts.of({"hot": 600, **{f"key {i}": 1 for i in range(400)}}, workers=4)
    >>> [(cost.way, round(cost.slow_down, 1)) for cost in costs(counts, workers=4)]
    [('kg', 2.7), ('sg', 1.0), ('salting', 1.4), ('pkg', 1.4), ('dchoices', 1.0), ('cg', 1.0)]
    """
    speeds = np.ones(workers) if capacities is None else np.asarray(capacities, np.float64)
    cases = _Cases(counts, workers, speeds, seed)
    for way in WAYS:
        yield cases.cost(way)


class _Cases:
    def __init__(self, counts: KeyCounts, workers: int, speeds: Floats, seed: int) -> None:
        self._counts = counts
        self._workers = workers
        self._speeds = speeds
        self._seed = seed
        self._stream: NDArray[np.int64] | None = None

    def cost(self, way: str) -> Cost:
        if way == "kg":
            return self._cost(way, self._counts.by_partition, 1.0, 1)
        if way == "sg":
            return self._by_round_robin()
        if way == "cg":
            return self._by_plan()
        return self._by_scheme(way)

    def _by_round_robin(self) -> Cost:
        turns, rest = divmod(self._counts.messages, self._workers)
        loads = np.full(self._workers, float(turns))
        loads[:rest] += 1
        # By chance: a worker holds a key unless all of its messages go to others.
        missed = (1 - 1 / self._workers) ** self._counts.values
        copies = (1 - missed) * self._workers
        return self._cost("sg", loads, self._counts.mean(copies), round(float(copies[0])))

    def _by_plan(self) -> Cost:
        counts = self._counts
        planner = Planner(self._workers, EPSILON, BUCKETS, self._speeds)
        plan = planner.update(counts.by_bucket)
        # At most: every key of a split bucket on all of its workers.
        copies = np.minimum(counts.keys_by_bucket * plan.copies, counts.by_bucket).sum()
        hottest = min(int(plan.copies[counts.top[0].bucket]), counts.hottest)
        return self._cost("cg", plan.shares * counts.messages, copies / counts.keys, hottest)

    def _by_scheme(self, way: str) -> Cost:
        if self._stream is None:
            self._stream = self._counts.stream(_ROUTED, self._seed)
        hashes = mix64(self._stream.view(np.uint64) + np.uint64(1))
        router = schemes.named(way).router(self._workers)
        found = metrics.key_copies(self._stream, router.route_many(hashes), self._workers)
        return self._cost(way, router.loads, float(found.mean()), int(found[0]))

    def _cost(self, way: str, loads: ArrayLike, copies: float, hottest: int) -> Cost:
        numbers = np.asarray(loads, np.float64)
        last = int(metrics.normalised_load(numbers, self._speeds).argmax())
        share = float(numbers[last] / numbers.sum())
        return Cost(way, share, slow_down(numbers, self._speeds), float(copies), hottest)
