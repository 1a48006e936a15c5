"""What workers did since the last decision, and what they would have to do next.

The work of micro-batches enters; measurements for delegation leave.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.control.slot_totals import BatchWork, Floats
from steelyard.delegation import Measurement


@dataclass(frozen=True, eq=False)
class ExpectedWork:
    """The work of every worker if the same messages came again: arrays by worker."""

    messages: Floats
    busy: Floats
    """Seconds that the worker would spend on them."""
    is_known: NDArray[np.bool_]
    """Whether the worker's speed is known."""
    backlog: Floats
    keys: Floats

    def measurements(self) -> list[Measurement]:
        """Return what each worker measures; an empty measurement if its speed is unknown."""
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
    """What workers did since the last decision.

    Short slots are judged together, because nothing moves between them.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._seconds = 0.0
        self._rows, self._busy = np.zeros((2, workers))
        # As if every worker had owned the virtual workers that it owns now.
        self._rescaled_rows, self._rescaled_busy = np.zeros((2, workers))
        self._is_comparable = np.ones(workers, np.bool_)
        # The most of any micro-batch.
        self._backlog, self._keys = np.zeros((2, workers))

    @property
    def seconds(self) -> float:
        """The time that was measured; at least the busy time of the busiest worker."""
        return max(self._seconds, float(self._busy.max()))

    def add(self, work: BatchWork, owned_then: Sequence[int], owned_now: Sequence[int]) -> None:
        """Add a micro-batch.

        Args:
            work: What the workers did in it.
            owned_then: By worker, its virtual workers in the version that the sources followed.
            owned_now: By worker, its virtual workers now.
        """
        then, now = np.array(owned_then, float), np.array(owned_now, float)
        growth = np.divide(now, then, out=np.zeros(self._workers), where=then > 0)
        # Without virtual workers in one micro-batch, a sum over several cannot be rescaled.
        self._is_comparable &= then > 0
        self._seconds += work.seconds
        self._rows += work.rows
        self._busy += work.busy
        self._rescaled_rows += work.rows * growth
        self._rescaled_busy += work.busy * growth
        np.maximum(self._backlog, work.backlog, out=self._backlog)
        np.maximum(self._keys, work.keys, out=self._keys)

    def rescaled(self) -> ExpectedWork:
        """Return what the workers did, rescaled to the virtual workers that they own now."""
        work = self._rescaled_rows, self._rescaled_busy
        return ExpectedWork(*work, self._is_comparable, self._backlog, self._keys)

    def planned(self, owners: NDArray[np.int32], shares: Floats) -> ExpectedWork:
        """Return what the workers would do if the measured messages followed a plan.

        A worker is as fast as it was. The speed of a worker that processed no rows is unknown,
        unless the plan has no messages for its virtual workers.

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
