"""Add up the reports of sources and workers during a slot.

Reports of micro-batches enter; the sums of a slot leave.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import HotKeyShare, WorkerSlot
from steelyard.control.reports import (
    LATENCY_BINS,
    SourceReport,
    WorkerReport,
    latency_quantile,
)

Floats = NDArray[np.float64]

_HOT_KEYS = 10
"""The number of hot keys that the history of a slot names."""


@dataclass(frozen=True, eq=False)
class BatchWork:
    """The work of all workers in one micro-batch: arrays by worker."""

    rows: Floats
    busy: Floats
    """The seconds spent on messages."""
    keys: Floats
    bytes: Floats
    version: int = 0
    """The newest version that the sources of the micro-batch followed; 0 if there was none."""
    seconds: float = 0.0
    """The duration of the micro-batch."""

    @property
    def backlog(self) -> Floats:
        """The messages that each worker has left when the mean worker has none left."""
        return backlog(self.rows, self.busy)


class SlotTotals:
    """The sums of the reports of a slot.

    A report that arrives twice counts once. Reports of other micro-batches, and of workers that do
    not exist, are ignored.

    >>> totals = SlotTotals(workers=2, tasks_per_worker=1, buckets=4)
    >>> work = totals.add(0, 1.0, [], [WorkerReport(batch=0, worker=1, rows=10, busy=0.5)])
    >>> totals.messages, totals.busy.tolist()
    (10, [0.0, 0.5])
    """

    def __init__(self, workers: int, tasks_per_worker: int, buckets: int) -> None:
        self._workers, self._tasks = workers, workers * tasks_per_worker
        self.batches = 0
        self.seconds = 0.0
        self.working = 0.0
        """The seconds in which at least one worker worked, by the clocks of their machines."""
        self.counts = np.zeros(buckets)
        """The number of messages, or the sum of their weights, by bucket."""
        self.rows, self.busy = np.zeros((2, workers))
        self.latencies = np.zeros((workers, LATENCY_BINS), np.int64)
        """The number of messages by worker and latency bin."""
        self._hot: Counter[str] = Counter()
        # The maximum of all micro-batches, by worker.
        self._keys, self._bytes, self._backlog = np.zeros((3, workers))

    @property
    def messages(self) -> int:
        """The number of messages of all workers."""
        return int(self.rows.sum())

    def add(
        self,
        batch: int,
        seconds: float,
        sources: Iterable[SourceReport],
        workers: Iterable[WorkerReport],
    ) -> BatchWork:
        """Add the reports of a micro-batch.

        Args:
            batch: The number of the micro-batch; reports of others are ignored.
            seconds: The duration of the micro-batch.
            sources: The reports of source tasks.
            workers: The reports of workers.

        Returns:
            The work of all workers in this micro-batch.
        """
        version = self._add_sources(r for r in sources if r.batch == batch)
        once = {report.worker: report for report in workers if report.batch == batch}
        known = [report for report in once.values() if 0 <= report.worker < self._tasks]
        rows, busy, keys, size = np.zeros((4, self._workers))
        for report in known:
            worker = report.worker % self._workers
            rows[worker] += report.rows
            busy[worker] += report.busy
            keys[worker] += report.keys
            size[worker] += report.bytes
            for latency, messages in report.latencies:
                self.latencies[worker, latency] += messages
        self.working += _span(known)
        self.batches += 1
        self.seconds += seconds
        work = BatchWork(rows, busy, keys, size, version, seconds)
        self._add_work(work)
        return work

    def _add_sources(self, reports: Iterable[SourceReport]) -> int:
        """Add the counts of all sources; return the newest version that a source followed."""
        version = 0
        for report in {(r.source, r.part): r for r in reports}.values():
            version = max(version, report.version)
            if report.counts.size == self.counts.size:
                self.counts += report.counts
                self._hot.update(dict(report.hot))
        return version

    def _add_work(self, work: BatchWork) -> None:
        self.rows += work.rows
        self.busy += work.busy
        np.maximum(self._keys, work.keys, out=self._keys)
        np.maximum(self._bytes, work.bytes, out=self._bytes)
        np.maximum(self._backlog, work.backlog, out=self._backlog)

    def worker_slots(self, states: Sequence[str], owned: Sequence[int]) -> tuple[WorkerSlot, ...]:
        """Return the measurements of every worker, with its state and number of virtual workers."""
        return tuple(
            self._worker_slot(worker, *of_worker)
            for worker, of_worker in enumerate(zip(states, owned, strict=True))
        )

    def _worker_slot(self, worker: int, state: str, owned: int) -> WorkerSlot:
        messages = int(self.rows[worker])
        return WorkerSlot(
            worker=worker,
            messages=messages,
            share=messages / max(1, self.messages),
            utilization=float(self.busy[worker]) / self.seconds if self.seconds else 0.0,
            state=state,
            virtual_workers=owned,
            keys=int(self._keys[worker]),
            p50=latency_quantile(self.latencies[worker], 0.5),
            p99=latency_quantile(self.latencies[worker], 0.99),
            service=float(self.busy[worker]) / messages if messages else None,
            backlog=float(self._backlog[worker]),
            bytes=int(self._bytes[worker]),
        )

    def hot_keys(self) -> tuple[HotKeyShare, ...]:
        """Return the most frequent keys, in descending order of their counts."""
        total = max(1, self.messages)
        return tuple(HotKeyShare(k, n / total) for k, n in self._hot.most_common(_HOT_KEYS))


def _span(reports: Sequence[WorkerReport]) -> float:
    """Return the seconds from the start of the first worker to the end of the last one."""
    began = min((report.began for report in reports), default=0.0)
    ended = max((report.ended for report in reports), default=0.0)
    return max(0.0, ended - began)


def backlog(rows: Floats, busy: Floats) -> Floats:
    """Return the messages that each worker has left when the mean worker has none left.

    All messages of a micro-batch are available when it begins. A worker that is busy for longer
    than the mean worker has a queue from that time on.

    >>> backlog(np.array([100.0, 100.0]), np.array([1.0, 4.0])).tolist()
    [0.0, 37.5]
    """
    left = np.zeros(rows.size)
    np.divide(rows * np.maximum(0.0, busy - busy.mean()), busy, out=left, where=busy > 0)
    return left
