"""The two sides of a delegation, and the rules that make them.

A worker's measurements enter; moves of virtual workers leave. The worker side runs where the
worker's numbers are known, the source side in each source, on its own copy of the assignment.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.assignment import Assignment, Move
from steelyard.delegation.measures import Measure
from steelyard.delegation.signals import Measurement, Report, Signal
from steelyard.validation import require_between

_LATE = 16
"""Acknowledgements may arrive this many slots after newer ones."""


class WorkerSide(ABC):
    """Turns what a worker measures into one state a slot."""

    def __init__(self, slot: float) -> None:
        require_between("slot", slot, above=0)
        self.slot = slot
        self._reported_at: float | None = None
        self._slots = -1

    def report(
        self, seen: Measurement, owned: float, now: float, fair_busy: float | None = None
    ) -> Report | None:
        """The state at the end of a slot; None while the slot since the last report lasts.

        `seen` covers the time since the last report, `owned` is the number of virtual workers
        whose messages this worker gets. `fair_busy` (see `fair_busy_time`) is given while the
        sources cannot keep up: then all workers are busy all the time, and a worker compares its
        busy time with what would be fair instead of with the clock.
        """
        if fair_busy is not None:
            require_between("fair_busy", fair_busy, above=0)
        last = self._reported_at
        if last is not None and now < last:  # the clock was set back: wait a slot from here
            self._reported_at = now
            return None
        seconds = self.slot if last is None else now - last
        if seconds < self.slot * (1 - 1e-9):
            return None
        self._reported_at = now
        # Slots are numbered by the clock, so that workers agree, and never go back.
        self._slots = max(self._slots + 1, round(now / self.slot))
        state = self._state(seen, owned, seconds, fair_busy)
        return Report(self._slots, state, self._by(owned))

    @abstractmethod
    def _state(
        self, seen: Measurement, owned: float, seconds: float, fair_busy: float | None
    ) -> Signal:
        """The worker's state at the end of a slot."""

    def _by(self, owned: float) -> int:
        """After `_state`: how many virtual workers too many or too few; 0 if it cannot tell."""
        return 0

    def save(self) -> dict[str, Any]:
        """The state of this side, ready for JSON."""
        return {"slot": self.slot, "reported_at": self._reported_at, "slots": self._slots}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self._reported_at = saved["reported_at"]
        self._slots = saved["slots"]


class SourceSide(ABC):
    """Pairs busy workers with idle ones, on one source's copy of the assignment."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self._last_slots = dict.fromkeys(assignment.workers, -1)

    def acknowledge(self, worker: int, report: Report | None) -> list[Move]:
        """Take note of an acknowledgement; the moves that it leads to are made already.

        Only the first acknowledgement with a new slot number counts. One without a report, from
        a worker whose first slot is not over, says nothing.
        """
        if worker not in self._last_slots:
            workers = list(self._last_slots)
            raise ValueError(f"there is no worker {worker}; the workers are {workers}")
        # A number far below the last one comes from a worker that was started again.
        if report is None or 0 <= self._last_slots[worker] - report.slot <= _LATE:
            return []
        self._last_slots[int(worker)] = int(report.slot)
        return self._react(int(worker), report)

    def acknowledge_all(self, reports: Iterable[tuple[int, Report]]) -> list[Move]:
        """Take note of what all workers say of a slot, where that is known at once.

        The busy ones come last, when it is known who can take what. Requests from earlier slots
        are dropped, if the rules drop any.
        """
        self._drop_requests()
        moves: list[Move] = []
        busy = []
        for worker, report in reports:
            if report.state is Signal.BUSY:
                busy.append((worker, report))
            else:
                moves += self.acknowledge(worker, report)
        for worker, report in self._rationed(busy):
            moves += self.acknowledge(worker, report)
        return moves

    def _rationed(self, busy: list[tuple[int, Report]]) -> list[tuple[int, Report]]:
        """Reduce what busy workers offer to what the others can take; here, leave it."""
        return busy

    @abstractmethod
    def _drop_requests(self) -> None:
        """Drop requests from earlier slots."""

    @abstractmethod
    def _react(self, worker: int, report: Report) -> list[Move]:
        """Pair, after the first word from `worker` about a new slot.

        A normal worker's report moves nothing; nor does an idle one's unless `has_pending_giver`.
        """

    @property
    @abstractmethod
    def has_pending_giver(self) -> bool:
        """Whether a busy worker waits here to give: the next idle one may lead to a move."""

    def add_worker(self, worker: int | None = None) -> list[Move]:
        """Let a worker join, with an average worker's part."""
        before = set(self.assignment.workers)
        moves = self.assignment.add_worker(worker)
        (joined,) = set(self.assignment.workers) - before
        self._last_slots[joined] = -1
        self._join(joined)
        return moves

    def remove_worker(self, worker: int) -> list[Move]:
        """Hand out a worker's virtual workers and forget it."""
        moves = self.assignment.remove_worker(worker)
        del self._last_slots[worker]
        self._leave(worker)
        return moves

    @abstractmethod
    def _join(self, worker: int) -> None: ...

    @abstractmethod
    def _leave(self, worker: int) -> None: ...

    def save(self) -> dict[str, Any]:
        """The assignment and the state of the pairing, ready for JSON."""
        return {"assignment": self.assignment.save(), "heard": list(self._last_slots.items())}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self._last_slots = dict(saved["heard"])


@dataclass(frozen=True, kw_only=True)
class Rules(ABC):
    """A delegation's settings; they make its two sides.

    A worker tries to keep its utilization, as `measure` defines it, between `low` and `high`.
    """

    measure: Measure
    low: float = 0.75
    high: float = 0.85

    def __post_init__(self) -> None:
        require_between("low", self.low, above=0)
        require_between("high", self.high, above=0)
        if self.high <= self.low:
            raise ValueError(f"high must be above low, {self.low}, got {self.high}")

    @abstractmethod
    def worker(self, slot: float) -> WorkerSide:
        """A worker's side; slots last `slot` seconds."""

    @abstractmethod
    def source(self, assignment: Assignment) -> SourceSide:
        """A source's side, which owns `assignment` from now on."""

    def resume_worker(self, saved: Mapping[str, Any]) -> WorkerSide:
        """A worker's side that goes on exactly where the saved one stopped."""
        side = self.worker(saved["slot"])
        side._restore(saved)
        return side

    def resume_source(self, saved: Mapping[str, Any]) -> SourceSide:
        """A source's side that goes on exactly where the saved one stopped."""
        side = self.source(Assignment.resume(saved["assignment"]))
        side._restore(saved)
        return side
