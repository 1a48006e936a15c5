"""The delegation of the paper, unchanged, as a reference."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.assignment import Assignment, Move
from steelyard.delegation.base import Rules, SourceSide, WorkerSide
from steelyard.delegation.measures import Measure, Work
from steelyard.delegation.signals import Measurement, Report, Signal


@dataclass(frozen=True, kw_only=True)
class PaperRules(Rules):
    """Rules with two thresholds and two first-come-first-served queues; a pair moves one at a time.

    These rules are kept as published, for comparison. They have known weaknesses:

    - With many virtual workers they are slow, because each pair moves one per slot.
    - With few virtual workers they oscillate, because the load of one virtual worker exceeds the
      band between the thresholds.
    - A worker without virtual workers gets no messages, so it never sends a signal again.
    - A worker stays in a queue when its state changes, so it may be in both queues.

    >>> source = PaperRules().source(Assignment.equal(workers=2, each=3))
    >>> source.acknowledge(0, Report(slot=1, state=Signal.IDLE))
    []
    >>> source.acknowledge(1, Report(slot=1, state=Signal.BUSY))
    [Move(virtual=5, giver=1, taker=0)]
    """

    measure: Measure = Work(backlog_weight=0)

    def worker(self, slot: float) -> WorkerSide:
        return _PaperWorker(self, slot)

    def source(self, assignment: Assignment) -> SourceSide:
        return _PaperSource(assignment)


class _PaperWorker(WorkerSide):
    def __init__(self, rules: PaperRules, slot: float) -> None:
        super().__init__(slot)
        self._rules = rules

    def _state(
        self, seen: Measurement, owned: float, seconds: float, fair_busy: float | None
    ) -> Signal:
        utilization = self._rules.measure.utilization(seen, seconds)
        if utilization < self._rules.low:
            return Signal.IDLE
        if utilization > self._rules.high:
            return Signal.BUSY
        return Signal.NORMAL


class _PaperSource(SourceSide):
    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self._idle: deque[int] = deque()
        self._busy: deque[int] = deque()

    def _react(self, worker: int, report: Report) -> list[Move]:
        queue = {Signal.IDLE: self._idle, Signal.BUSY: self._busy}.get(report.state)
        if queue is None or worker in queue:
            return []
        queue.append(worker)
        moves = []
        while self._idle and self._busy:
            giver, taker = self._busy.popleft(), self._idle.popleft()
            if giver != taker and self.assignment.count(giver):
                moves += self.assignment.give(giver, taker)
        return moves

    def _drop_requests(self) -> None:
        """Do nothing: workers stay in their queue, as published."""

    @property
    def has_pending_giver(self) -> bool:
        return bool(self._busy)

    def _join(self, worker: int) -> None:
        pass

    def _leave(self, worker: int) -> None:
        for queue in (self._idle, self._busy):
            if worker in queue:
                queue.remove(worker)

    def save(self) -> dict[str, Any]:
        return {**super().save(), "idle": list(self._idle), "busy": list(self._busy)}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        super()._restore(saved)
        self._idle = deque(saved["idle"])
        self._busy = deque(saved["busy"])
