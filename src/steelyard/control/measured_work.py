"""The work of all workers since the last decision, and the work to expect next.

The work of micro-batches enters; measurements for the delegation leave.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.control.slot_totals import BatchWork, Floats
from steelyard.delegation import Measurement


@dataclass(frozen=True, eq=False)
class ExpectedWork:
    """The work of every worker if the same messages arrived again: arrays by worker."""

    messages: Floats
    busy: Floats
    """The seconds that the worker would spend on its messages."""
    is_known: NDArray[np.bool_]
    """Whether the worker's speed is known."""
    backlog: Floats
    keys: Floats

    def measurements(self) -> list[Measurement]:
        """Return the measurement of each worker; an empty one if its speed is unknown."""
        return [
            self._measurement(worker) if is_known else Measurement()
            for worker, is_known in enumerate(self.is_known)
        ]

    def _measurement(self, worker: int) -> Measurement:
        messages, busy = float(self.messages[worker]), float(self.busy[worker])
        return Measurement(
            arrivals=messages,
            backlog=float(self.backlog[worker]),
            service_time=busy / messages if messages else 0.0,
            busy=busy,
            memory=float(self.keys[worker]),
        )


class MeasuredWork:
    """The work of all workers since the last decision.

    Short slots are judged together, because no virtual worker moves between them.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._seconds = 0.0
        self._rows, self._busy = np.zeros((2, workers))
        # The work if every worker had owned its present number of virtual workers.
        self._rescaled_rows, self._rescaled_busy = np.zeros((2, workers))
        self._is_comparable = np.ones(workers, np.bool_)
        # The maximum of all micro-batches.
        self._backlog, self._keys = np.zeros((2, workers))

    @property
    def seconds(self) -> float:
        """The length of the measured time; at least the busy time of the busiest worker."""
        return max(self._seconds, float(self._busy.max()))

    @property
    def messages(self) -> float:
        """The number of messages of all workers."""
        return float(self._rows.sum())

    def add(self, work: BatchWork, owned_then: Sequence[int], owned_now: Sequence[int]) -> None:
        """Add the work of a micro-batch.

        Args:
            work: The work of all workers in the micro-batch.
            owned_then: The number of virtual workers of each worker, in the version that the
                sources followed.
            owned_now: The number of virtual workers that each worker owns now.
        """
        then, now = np.array(owned_then, float), np.array(owned_now, float)
        growth = np.divide(now, then, out=np.zeros(self._workers), where=then > 0)
        # A worker without virtual workers in one micro-batch has no factor to rescale its sum by.
        self._is_comparable &= then > 0
        self._seconds += work.seconds
        self._rows += work.rows
        self._busy += work.busy
        self._rescaled_rows += work.rows * growth
        self._rescaled_busy += work.busy * growth
        np.maximum(self._backlog, work.backlog, out=self._backlog)
        np.maximum(self._keys, work.keys, out=self._keys)

    def rescaled(self) -> ExpectedWork:
        """Return the measured work, rescaled to the virtual workers that workers own now."""
        work = self._rescaled_rows, self._rescaled_busy
        return ExpectedWork(*work, self._is_comparable, self._backlog, self._keys)

    def planned(self, owners: NDArray[np.int32], shares: Floats) -> ExpectedWork:
        """Return the work of all workers if the measured messages followed a plan.

        Each worker keeps its measured speed. The speed of a worker that processed no rows is
        unknown, unless the plan has no messages for its virtual workers.

        Args:
            owners: The worker of every virtual worker.
            shares: The share of the messages that the plan has for every virtual worker.
        """
        planned = np.bincount(owners, shares, self._workers) * self._rows.sum()
        has_worked = self._rows > 0
        each = np.divide(self._busy, self._rows, out=np.zeros(self._workers), where=has_worked)
        owns = np.bincount(owners, minlength=self._workers) > 0
        is_known = has_worked | (owns & (planned == 0))
        return ExpectedWork(planned, planned * each, is_known, self._backlog, self._keys)
