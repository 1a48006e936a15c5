"""The interfaces of a delegation: the worker side, the source side, and the rules.

The measurements of workers enter; moves of virtual workers leave. A worker side runs where the
measurements of its worker are available. A source side runs in each source, on its own copy of the
assignment.
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
"""The most slots by which an acknowledgment may arrive after a newer one."""


class WorkerSide(ABC):
    """The part of a delegation that turns the measurements of a worker into one state per slot."""

    def __init__(self, slot: float) -> None:
        require_between("slot", slot, above=0)
        self.slot = slot
        self._reported_at: float | None = None
        self._slots = -1

    def report(
        self, seen: Measurement, owned: float, now: float, fair_busy: float | None = None
    ) -> Report | None:
        """Return the report at the end of a slot; None if the slot is not over.

        Args:
            seen: The measurement of the time since the last report.
            owned: The number of virtual workers whose messages this worker gets.
            now: The current time in seconds.
            fair_busy: The fair busy time (see `fair_busy_time`), if the sources cannot keep up.
                Then all workers are busy all the time, and a worker compares its busy time with
                the fair one instead of with the length of the slot.
        """
        if fair_busy is not None:
            require_between("fair_busy", fair_busy, above=0)
        last = self._reported_at
        if last is not None and now < last:  # the clock was set back: wait a slot from now
            self._reported_at = now
            return None
        seconds = self.slot if last is None else now - last
        if seconds < self.slot * (1 - 1e-9):
            return None
        self._reported_at = now
        # The number comes from the clock, so that all workers agree on it. It always increases.
        self._slots = max(self._slots + 1, round(now / self.slot))
        state = self._state(seen, owned, seconds, fair_busy)
        return Report(self._slots, state, self._by(owned))

    @abstractmethod
    def _state(
        self, seen: Measurement, owned: float, seconds: float, fair_busy: float | None
    ) -> Signal:
        """Return the state of the worker at the end of a slot."""

    def _by(self, owned: float) -> int:
        """Return the number of virtual workers too many or too few, after `_state`; 0: unknown."""
        return 0

    def save(self) -> dict[str, Any]:
        """Return the state of this side as a dictionary for JSON."""
        return {"slot": self.slot, "reported_at": self._reported_at, "slots": self._slots}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self._reported_at = saved["reported_at"]
        self._slots = saved["slots"]


class SourceSide(ABC):
    """The part of a delegation that pairs busy and idle workers, on a source's assignment."""

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self._last_slots = dict.fromkeys(assignment.workers, -1)

    def acknowledge(self, worker: int, report: Report | None) -> list[Move]:
        """Process an acknowledgment, and return the moves, which the assignment already includes.

        Only the first acknowledgment of each slot counts. A worker whose first slot is not over
        sends acknowledgments without a report, which are ignored.
        """
        if worker not in self._last_slots:
            workers = list(self._last_slots)
            raise ValueError(f"there is no worker {worker}; the workers are {workers}")
        # A number far below the last one comes from a worker that has restarted.
        if report is None or 0 <= self._last_slots[worker] - report.slot <= _LATE:
            return []
        self._last_slots[int(worker)] = int(report.slot)
        return self._react(int(worker), report)

    def acknowledge_all(self, reports: Iterable[tuple[int, Report]]) -> list[Move]:
        """Process the reports of all workers about one slot, if they are available together.

        The reports of busy workers are processed last, when the room of the others is known.
        Requests from earlier slots are dropped, if the rules drop any.
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
        """Reduce the offers of busy workers to the room of the others; by default, change none."""
        return busy

    @abstractmethod
    def _drop_requests(self) -> None:
        """Drop requests from earlier slots."""

    @abstractmethod
    def _react(self, worker: int, report: Report) -> list[Move]:
        """Pair workers after the first report of `worker` about a new slot.

        The report of a normal worker leads to no move. The report of an idle worker leads to moves
        only if `has_pending_giver`.
        """

    @property
    @abstractmethod
    def has_pending_giver(self) -> bool:
        """Whether a busy worker waits for a taker, so that an idle worker may lead to a move."""

    def add_worker(self, worker: int | None = None) -> list[Move]:
        """Add a worker with the mean number of virtual workers."""
        before = set(self.assignment.workers)
        moves = self.assignment.add_worker(worker)
        (joined,) = set(self.assignment.workers) - before
        self._last_slots[joined] = -1
        self._join(joined)
        return moves

    def remove_worker(self, worker: int) -> list[Move]:
        """Remove a worker; the others take its virtual workers."""
        moves = self.assignment.remove_worker(worker)
        del self._last_slots[worker]
        self._leave(worker)
        return moves

    @abstractmethod
    def _join(self, worker: int) -> None: ...

    @abstractmethod
    def _leave(self, worker: int) -> None: ...

    def save(self) -> dict[str, Any]:
        """Return the assignment and the state of the pairing as a dictionary for JSON."""
        return {"assignment": self.assignment.save(), "last_slots": list(self._last_slots.items())}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        self._last_slots = dict(saved["last_slots"])


@dataclass(frozen=True, kw_only=True)
class Rules(ABC):
    """The settings of a delegation, which create its worker sides and source sides.

    Each worker tries to keep its utilization, as `measure` defines it, between `low` and `high`.
    """

    measure: Measure
    """The load measure that defines the utilization of a worker."""
    low: float = 0.75
    """The utilization below which a worker is idle."""
    high: float = 0.85
    """The utilization above which a worker is busy."""

    def __post_init__(self) -> None:
        require_between("low", self.low, above=0)
        require_between("high", self.high, above=0)
        if self.high <= self.low:
            raise ValueError(f"high must be above low, {self.low}, got {self.high}")

    @abstractmethod
    def worker(self, slot: float) -> WorkerSide:
        """Return a worker side for slots of `slot` seconds."""

    @abstractmethod
    def source(self, assignment: Assignment) -> SourceSide:
        """Return a source side, which changes `assignment` from now on."""

    def resume_worker(self, saved: Mapping[str, Any]) -> WorkerSide:
        """Return a worker side that resumes exactly from the saved state."""
        side = self.worker(saved["slot"])
        side._restore(saved)
        return side

    def resume_source(self, saved: Mapping[str, Any]) -> SourceSide:
        """Return a source side that resumes exactly from the saved state."""
        side = self.source(Assignment.resume(saved["assignment"]))
        side._restore(saved)
        return side
