"""Turn what a real-time query observes of a batch into reports of sources and workers.

Sums over all messages of a batch enter; reports leave. Spark computes the sums without Python.

Where the work of a message lies between two readings of a clock, its service time is measured. A
stateful aggregation of Spark admits no clock. There the busy time of a worker follows from the time
that messages wait, because a worker with a longer queue is a slower one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.control.reports import (
    LATENCY_BINS,
    SourceReport,
    WorkerReport,
    latency_of,
)

_GAIN = 0.5
"""The part of a difference in utilization that one slot corrects. With more, the shares of workers
oscillate."""

Counted = Iterable[tuple[int, int]]
"""Pairs of a number and how often it occurred."""


@dataclass(frozen=True)
class ObservedSums:
    """The sums of a batch, and the numbers of workers and buckets that they are about."""

    batch: int
    workers: int
    buckets: int
    version: int
    """The number of the version that the batch followed."""
    counted_buckets: Counted
    """The number of messages of each bucket."""
    counted_latencies: Counted
    """The number of messages of each code, `latency_code`."""
    busy: Sequence[float] | None
    """The seconds that each worker spent on its messages; None if they are not measured."""
    seconds: float = 0.0
    """The length of the batch."""

    def source_report(self) -> SourceReport:
        """Return the report of all sources together."""
        counts = np.zeros(self.buckets, np.float32)
        for bucket, messages in self.counted_buckets:
            counts[bucket] += messages
        return SourceReport(self.batch, 0, 0, counts, (), self.version)

    def worker_reports(self) -> list[WorkerReport]:
        """Return the report of every worker."""
        latencies: list[list[tuple[int, int]]] = [[] for _ in range(self.workers)]
        for code, messages in sorted(self.counted_latencies):
            worker, latency = divmod(code, LATENCY_BINS)
            latencies[worker].append((latency, messages))
        rows = [sum(messages for _, messages in found) for found in latencies]
        busy = self.busy
        if busy is None:
            delays = [
                sum(messages * latency_of(latency) for latency, messages in found) / max(count, 1)
                for found, count in zip(latencies, rows, strict=True)
            ]
            busy = busy_from_delays(rows, delays, self.seconds)
        return [
            WorkerReport(self.batch, worker, rows[worker], busy[worker], latencies=tuple(found))
            for worker, found in enumerate(latencies)
        ]


def busy_from_delays(rows: Sequence[int], delays: Sequence[float], seconds: float) -> list[float]:
    """Return busy times that differ as far as the queues of the workers do.

    The shortest delay of a worker is that of Kafka and Spark; the rest is time in a queue. By
    Little's law the mean length of a queue is the arrival rate times this time, and a queue of
    length `n` belongs to a utilization of about `n / (1 + n)`. This is exact only for a worker that
    cannot keep up, and says nothing about the speed of one that can. So the busy times differ by
    `_GAIN` times the difference in utilization: a worker with a longer queue gets somewhat less
    work after every slot, until the queues have the same length.

    Args:
        rows: The number of messages of each worker.
        delays: The mean seconds from the arrival of a message until it is processed.
        seconds: The length of the batch.

    >>> busy = busy_from_delays([1000, 1000], [0.010, 0.110], seconds=10)
    >>> [round(time / 10, 2) for time in busy]
    [0.66, 1.0]
    """
    if not seconds or not any(rows):
        return [0.0] * len(rows)
    least = min(delay for delay, count in zip(delays, rows, strict=True) if count)
    lengths = [
        count * max(0.0, delay - least) / seconds for delay, count in zip(delays, rows, strict=True)
    ]
    # At the start all messages wait for Spark, and small differences of long delays mean nothing.
    parts = [1 - least / delay if delay > least else 0.0 for delay in delays]
    used = [part * length / (1 + length) for part, length in zip(parts, lengths, strict=True)]
    mean = sum(used) / len(used)
    return [
        seconds * max(used) * (1 + _GAIN * (own - mean)) if count else 0.0
        for own, count in zip(used, rows, strict=True)
    ]


def latency_code(worker: int, latency: int) -> int:
    """Return one number for a worker and a latency bin.

    >>> divmod(latency_code(worker=3, latency=20), LATENCY_BINS)
    (3, 20)
    """
    return worker * LATENCY_BINS + latency
