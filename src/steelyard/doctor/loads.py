"""Compute the load of each task and the copies of keys under a grouping strategy.

Counts of keys and a job enter; loads and copies leave. A strategy that places a key by its hash
or by the counts is computed from these. A strategy that splits a key message by message (salting,
two choices, D-Choices) is simulated on messages that are drawn from the counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard import metrics, schemes
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import BUCKETS, KeyCounts
from steelyard.doctor.scheduling import stage_time
from steelyard.hashing import mix64
from steelyard.plans import Planner

Floats = NDArray[np.float64]

EPSILON = 0.01
"""Slack of the plan that consistent grouping is computed with."""

_MOST_SIMULATED = 5_000_000
"""Most messages that a simulation routes."""


@dataclass(frozen=True, eq=False)
class Workload:
    """Counts of keys, and the job that processes the messages."""

    counts: KeyCounts
    job: Job
    seed: int = 0

    @cached_property
    def speeds(self) -> Floats:
        """The speed of each worker."""
        capacities = self.job.capacities
        return np.ones(self.workers) if capacities is None else np.asarray(capacities, np.float64)

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self.job.workers

    @cached_property
    def stream(self) -> NDArray[np.int64]:
        """Keys of messages in random order, drawn once for all simulations."""
        return self.counts.stream(_MOST_SIMULATED, self.seed)

    @property
    def ideal(self) -> float:
        """Time of the stage, in microseconds, if load were proportional to speed."""
        rows = self.counts.messages * self.job.row_time
        return float((rows + self.workers * self.job.work.task_time) / self.speeds.sum())

    def time(self, messages: ArrayLike) -> float:
        """Return the time of the stage, in microseconds, from the messages of each task."""
        times = np.asarray(messages, np.float64) * self.job.row_time + self.job.work.task_time
        return stage_time(times, self.speeds, is_assigned=times.size == self.workers)


@dataclass(frozen=True, eq=False)
class TaskLoads:
    """Messages of each task, and the workers that hold a key."""

    messages: ArrayLike
    copies: float
    """Workers that hold a key, on average over the keys."""
    hottest_copies: int
    """Workers that hold the hottest key."""
    note: str = ""
    """What Spark does to get these tasks, if that is not obvious."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of Spark that lead to these tasks, if they are not the defaults."""


def loads_by_hash(workload: Workload) -> TaskLoads:
    """Send every key to the partition that Spark's own hash selects."""
    return TaskLoads(workload.counts.partitions(workload.workers), 1.0, 1)


def loads_by_round_robin(workload: Workload) -> TaskLoads:
    """Send equal numbers of messages to all workers; copies of keys are expected values."""
    counts, workers = workload.counts, workload.workers
    turns, rest = divmod(counts.messages, workers)
    messages = np.full(workers, float(turns))
    messages[:rest] += 1
    # A worker holds a key unless all messages of the key go to other workers.
    missed = (1 - 1 / workers) ** counts.values
    copies = (1 - missed) * workers
    return TaskLoads(messages, counts.mean(copies), round(float(copies[0])))


def loads_by_plan(workload: Workload) -> TaskLoads:
    """Follow the plan that `sy.repartition` would make; copies of keys are an upper bound."""
    counts = workload.counts
    planner = Planner(workload.workers, EPSILON, BUCKETS, workload.speeds)
    plan = planner.update(counts.by_bucket)
    # Upper bound: each key of a split bucket is on all workers of the bucket.
    copies = np.minimum(counts.keys_by_bucket * plan.copies, counts.by_bucket).sum()
    hottest = min(int(plan.copies[counts.top[0].bucket]), counts.hottest)
    return TaskLoads(plan.shares * counts.messages, copies / counts.keys, hottest)


def loads_by_scheme(scheme: str, workload: Workload) -> TaskLoads:
    """Route messages that are drawn from the counts, one by one, with a scheme."""
    stream = workload.stream
    hashes = mix64(stream.view(np.uint64) + np.uint64(1))
    router = schemes.named(scheme).router(workload.workers)
    copies = metrics.key_copies(stream, router.route_many(hashes), workload.workers)
    return TaskLoads(router.loads, float(copies.mean()), int(copies[0]))
