"""Compute the cost of each grouping strategy on the counted keys.

Counts and a job enter; for each strategy the largest task, its slowdown and the copies of keys
leave.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from steelyard import metrics
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.loads import Floats, Workload
from steelyard.doctor.scheduling import stage_time
from steelyard.doctor.strategies import GroupingStrategy, compared

_COUNTING_TIME = 0.2
"""Microseconds in which Steelyard counts a row before it makes a plan."""


@dataclass(frozen=True)
class Cost:
    """The cost of the data under one grouping strategy."""

    strategy: GroupingStrategy
    largest_share: float
    """Share of all messages that the slowest task gets."""
    slowdown: float
    """Time of the stage, divided by its time if load were proportional to speed."""
    copies: float
    """Workers that hold a key, on average over the keys."""
    hottest_copies: int
    """Workers that hold the hottest key."""
    tasks: int
    """Number of tasks."""
    with_overhead: float
    """The slowdown with the time that tasks and, with Steelyard, counting take in addition."""
    note: str = ""
    """What Spark does to get these tasks, if that is not obvious."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of Spark that lead to these tasks, if they are not the defaults."""

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {**vars(self), "strategy": self.strategy.name, "settings": dict(self.settings)}


def costs(counts: KeyCounts, job: Job, seed: int = 0) -> Iterator[Cost]:
    """Compute the cost of each strategy for this kind of work, one after the other.

    Args:
        counts: Counts of all keys.
        job: The job with its workers, which share the messages.
        seed: Seed of the messages that simulated strategies route.

    >>> from steelyard.doctor.work import PYTHON
    >>> counts = KeyCounts.of({"hot": 600, **{f"key {i}": 1 for i in range(400)}}, workers=4)
    >>> for cost in costs(counts, Job(PYTHON, ("key",), 4)):
    ...     print(cost.strategy.name, round(cost.slowdown, 1))
    kg 2.8
    kg-more 2.8
    sg 1.0
    salting 1.4
    pkg 1.4
    dchoices 1.0
    cg 1.0
    """
    workload = Workload(counts, job, seed)
    for strategy in compared(job.work.name):
        yield _cost(strategy, workload)


def _cost(strategy: GroupingStrategy, workload: Workload) -> Cost:
    loads = strategy.loads(workload)
    messages = np.asarray(loads.messages, np.float64)
    # A simulation may have routed only a sample of the messages.
    time = workload.time(messages * (workload.counts.messages / messages.sum()))
    if strategy.is_ours and workload.job.has_counting_pass:
        time += _COUNTING_TIME * workload.counts.messages / float(workload.speeds.sum())
    return Cost(
        strategy,
        largest_share=_slowest(messages, workload.speeds) / float(messages.sum()),
        slowdown=slowdown(messages, workload.speeds),
        copies=float(loads.copies),
        hottest_copies=loads.hottest_copies,
        tasks=messages.size,
        with_overhead=time / workload.ideal,
        note=loads.note,
        settings=loads.settings,
    )


def slowdown(tasks: Floats, speeds: Floats) -> float:
    """Divide the time of a stage by the time if load were proportional to speed.

    >>> one, uneven = np.ones(2), np.array([3.0, 1.0])
    >>> slowdown(np.array([6.0, 2]), one), slowdown(np.array([6.0, 2]), uneven)
    (1.5, 1.0)
    >>> slowdown(np.array([1.0, 1, 1, 5]), one)
    1.5
    """
    ideal = float(tasks.sum() / speeds.sum())
    return stage_time(tasks, speeds, is_assigned=tasks.size == speeds.size) / ideal


def _slowest(tasks: Floats, speeds: Floats) -> float:
    """Return the messages of the task that takes longest."""
    if tasks.size != speeds.size:
        return float(tasks.max())
    return float(tasks[metrics.normalized_load(tasks, speeds).argmax()])
