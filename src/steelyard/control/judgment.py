"""Judge workers by what they did, and decide who owns which virtual worker.

The work of micro-batches enters; the state of every worker and moves of virtual workers leave.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.assignment import Assignment, Move
from steelyard.control.measured_work import ExpectedWork, MeasuredWork
from steelyard.control.slot_totals import BatchWork, Floats
from steelyard.delegation import Report, Rules, Signal, SourceSide, WorkerSide, fair_busy_time

_REMEMBERED_VERSIONS = 32
"""Versions whose numbers of virtual workers are remembered, for reports that come late."""

_LEAST_FAIR_BUSY = 0.1
"""Seconds of fair busy time: with less, busy workers cannot be recognized, and the next slots are
added before anything is decided."""

_DRAINED = "drained"


@dataclass(frozen=True)
class Decision:
    """What the end of a slot led to."""

    states: Sequence[str]
    """By worker: idle, normal, busy or drained."""
    moves: Sequence[Move] = ()


class Judgment(ABC):
    """Owners of virtual workers, and what the workers' reports change about them."""

    tasks_per_worker: int
    """Tasks of a micro-batch that report as one worker."""
    moves_owners: bool
    """Whether virtual workers can move to other workers."""

    @property
    @abstractmethod
    def owners(self) -> NDArray[np.int32]:
        """The worker of every virtual worker."""

    @property
    @abstractmethod
    def owned(self) -> list[int]:
        """By worker: the number of its virtual workers."""

    @abstractmethod
    def remember(self, version: int) -> None:
        """Remember the current owners as those of a version."""

    @abstractmethod
    def add(self, work: BatchWork) -> None:
        """Add what workers did in a micro-batch."""

    @abstractmethod
    def decide(
        self, slot: int, shares: Floats | None = None, drained: AbstractSet[int] = frozenset()
    ) -> Decision:
        """Judge every worker at the end of a slot, and move virtual workers.

        Args:
            slot: The number of the slot, which grows.
            shares: The share of messages that the next plan has for every virtual worker; None to
                judge workers by what they did.
            drained: Workers that get no work.

        Returns:
            The state of every worker and the moves, which are made already.
        """

    @abstractmethod
    def save(self) -> dict[str, Any] | None:
        """Return the state ready for JSON; None if there is none."""


class FixedOwners(Judgment):
    """Virtual workers that are tasks: any free task slot runs the next one, and none ever moves.

    >>> fixed = FixedOwners(workers=2, tasks_per_worker=3)
    >>> fixed.decide(slot=1)
    Decision(states=['normal', 'normal'], moves=())
    """

    moves_owners = False

    def __init__(self, workers: int, tasks_per_worker: int) -> None:
        self._workers, self.tasks_per_worker = workers, tasks_per_worker

    @property
    def owners(self) -> NDArray[np.int32]:
        return np.arange(self._workers * self.tasks_per_worker, dtype=np.int32)

    @property
    def owned(self) -> list[int]:
        return [self.tasks_per_worker] * self._workers

    def remember(self, version: int) -> None:
        """Do nothing: all versions have the same owners."""

    def add(self, work: BatchWork) -> None:
        """Do nothing: no worker is judged."""

    def decide(
        self, slot: int, shares: Floats | None = None, drained: AbstractSet[int] = frozenset()
    ) -> Decision:
        return Decision([Signal.NORMAL.value] * self._workers)

    def save(self) -> None:
        return None


class DelegatedOwners(Judgment):
    """Virtual workers that move between workers by the rules of a delegation.

    One source side stands for all sources, because they follow the same version. Each worker side
    gets the fair busy time: the one that all workers would have if load were proportional to speed.
    """

    moves_owners = True
    tasks_per_worker = 1

    def __init__(self, rules: Rules, source: SourceSide, workers: int) -> None:
        self._rules, self._source, self._workers = rules, source, workers
        self._sides = [rules.worker(slot=1.0) for _ in range(workers)]
        self._work = MeasuredWork(workers)
        self._owned_in: dict[int, list[int]] = {}

    @property
    def _assignment(self) -> Assignment:
        return self._source.assignment

    @property
    def owners(self) -> NDArray[np.int32]:
        return self._assignment.owners

    @property
    def owned(self) -> list[int]:
        there = set(self._assignment.workers)
        return [self._assignment.count(w) if w in there else 0 for w in range(self._workers)]

    def remember(self, version: int) -> None:
        self._owned_in[version] = self.owned
        self._owned_in.pop(version - _REMEMBERED_VERSIONS, None)

    def add(self, work: BatchWork) -> None:
        """Add what workers did, rescaled from the version of the micro-batch to the owners now.

        A micro-batch may have begun before the last decision.
        """
        owned = self.owned
        self._work.add(work, self._owned_in.get(work.version, owned), owned)

    def decide(
        self, slot: int, shares: Floats | None = None, drained: AbstractSet[int] = frozenset()
    ) -> Decision:
        moves = self._apply_drained(drained)
        if moves:
            self._forget_work()
        expected = self._expected(shares)
        fair = fair_busy_time(expected.measurements())
        reports = []
        if fair is not None and fair >= _LEAST_FAIR_BUSY:
            reports = self._reports(expected, slot, fair)
            moves += self._source.acknowledge_all(reports)
            self._forget_work()
        return Decision(self._states(reports), moves)

    def _expected(self, shares: Floats | None) -> ExpectedWork:
        if shares is None:
            return self._work.rescaled()
        return self._work.planned(self.owners, shares)

    def _reports(self, expected: ExpectedWork, slot: int, fair: float) -> list[tuple[int, Report]]:
        """Return what every worker reports whose speed is known."""
        seconds, measurements = self._work.seconds, expected.measurements()
        reports = []
        for worker in self._assignment.workers:
            if not expected.is_known[worker]:
                continue
            side = self._sides[worker] = self._side_for(worker, seconds)
            owned = self._assignment.count(worker)
            # The clock counts slots, so that it never goes back, whatever the machine's does.
            report = side.report(measurements[worker], owned, slot * seconds, fair_busy=fair)
            if report is not None:
                reports.append((worker, report))
        return reports

    def _side_for(self, worker: int, seconds: float) -> WorkerSide:
        """Return a worker's side with the length of the slot that it reports.

        A side expects slots of one length, and slots of micro-batches differ. Rules that compare
        the busy time with the clock need the length of this one.
        """
        saved = self._sides[worker].save()
        return self._rules.resume_worker({**saved, "slot": seconds, "reported_at": None})

    def _states(self, reports: Sequence[tuple[int, Report]]) -> list[str]:
        states = [_DRAINED] * self._workers
        for worker in self._assignment.workers:
            states[worker] = Signal.NORMAL.value
        for worker, report in reports:
            states[worker] = report.state.value
        return states

    def _apply_drained(self, drained: AbstractSet[int]) -> list[Move]:
        """Take all virtual workers from drained workers, and let the others join again."""
        moves: list[Move] = []
        for worker in range(self._workers):
            is_there = worker in self._assignment.workers
            if worker in drained and is_there and len(self._assignment.workers) > 1:
                moves += self._source.remove_worker(worker)
            elif worker not in drained and not is_there:
                moves += self._source.add_worker(worker)
                self._sides[worker] = self._rules.worker(slot=1.0)
        return moves

    def _forget_work(self) -> None:
        self._work = MeasuredWork(self._workers)

    def save(self) -> dict[str, Any]:
        return self._source.save()
