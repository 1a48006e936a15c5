"""Compute the cost of each grouping strategy on the counted keys.

Counts and workers enter; for each strategy the largest task, its slowdown and the copies of keys
leave.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard import metrics
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.loads import Floats, Workload
from steelyard.doctor.strategies import STRATEGIES, GroupingStrategy


@dataclass(frozen=True)
class Cost:
    """The cost of the data under one grouping strategy."""

    strategy: GroupingStrategy
    largest_share: float
    """Share of all messages that the slowest worker gets."""
    slowdown: float
    """Time of the slowest worker, divided by its time if load were proportional to speed."""
    copies: float
    """Workers that hold a key, on average over the keys."""
    hottest_copies: int
    """Workers that hold the hottest key."""

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "strategy": self.strategy.name,
            "largest_share": self.largest_share,
            "slowdown": self.slowdown,
            "copies": self.copies,
            "hottest_copies": self.hottest_copies,
        }


def slowdown(loads: ArrayLike, capacities: Floats) -> float:
    """Divide the longest time of a worker by the time if load were proportional to capacity.

    >>> slowdown([6, 2], np.array([1.0, 1.0])), slowdown([6, 2], np.array([3.0, 1.0]))
    (1.5, 1.0)
    """
    ideal = np.sum(loads) / capacities.sum()
    return float(metrics.normalized_load(loads, capacities).max() / ideal)


def costs(
    counts: KeyCounts, workers: int, capacities: Sequence[float] | None = None, seed: int = 0
) -> Iterator[Cost]:
    """Compute the cost of each of `STRATEGIES`, one after the other.

    Args:
        counts: Counts of all keys.
        workers: Number of workers that share the messages.
        capacities: Speed of each worker; None if all are equally fast.
        seed: Seed of the messages that simulated strategies route.

    >>> counts = KeyCounts.of({"hot": 600, **{f"key {i}": 1 for i in range(400)}}, workers=4)
    >>> [(cost.strategy.name, round(cost.slowdown, 1)) for cost in costs(counts, workers=4)]
    [('kg', 2.7), ('sg', 1.0), ('salting', 1.4), ('pkg', 1.4), ('dchoices', 1.0), ('cg', 1.0)]
    """
    speeds = np.ones(workers) if capacities is None else np.asarray(capacities, np.float64)
    workload = Workload(counts, speeds, seed)
    for strategy in STRATEGIES:
        yield _cost(strategy, workload)


def _cost(strategy: GroupingStrategy, workload: Workload) -> Cost:
    loads = strategy.loads(workload)
    messages = np.asarray(loads.messages, np.float64)
    slowest = int(metrics.normalized_load(messages, workload.speeds).argmax())
    return Cost(
        strategy,
        largest_share=float(messages[slowest] / messages.sum()),
        slowdown=slowdown(messages, workload.speeds),
        copies=float(loads.copies),
        hottest_copies=loads.hottest_copies,
    )
