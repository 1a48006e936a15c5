"""Judge workers by their work, and decide which worker owns which virtual worker.

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
from steelyard.control.low_load import LEAST_FAIR_BUSY, LEAST_MESSAGES, is_low_load
from steelyard.control.measured_work import ExpectedWork, MeasuredWork
from steelyard.control.slot_totals import BatchWork, Floats
from steelyard.delegation import Report, Rules, Signal, SourceSide, WorkerSide, fair_busy_time

_REMEMBERED_VERSIONS = 32
"""The number of versions whose counts of virtual workers are remembered, for late reports."""

_DRAINED = "drained"


@dataclass(frozen=True)
class Decision:
    """The states and the moves that were decided at the end of a slot."""

    states: Sequence[str]
    """The state of each worker: idle, normal, busy or drained."""
    moves: Sequence[Move] = ()


class Judgment(ABC):
    """The owners of virtual workers, and the rules that change them by the workers' reports."""

    tasks_per_worker: int
    """The number of tasks of a micro-batch that report as one worker."""
    moves_owners: bool
    """Whether virtual workers can move to other workers."""

    @property
    @abstractmethod
    def owners(self) -> NDArray[np.int32]:
        """The worker of every virtual worker."""

    @property
    @abstractmethod
    def owned(self) -> list[int]:
        """The number of virtual workers of each worker."""

    @abstractmethod
    def remember(self, version: int) -> None:
        """Remember the current owners as those of a version."""

    @abstractmethod
    def add(self, work: BatchWork) -> None:
        """Add the work of all workers in a micro-batch."""

    @abstractmethod
    def decide(
        self, slot: int, shares: Floats | None = None, drained: AbstractSet[int] = frozenset()
    ) -> Decision:
        """Judge every worker at the end of a slot, and move virtual workers.

        Args:
            slot: The number of the slot, which increases.
            shares: The share of messages that the next plan has for every virtual worker; None to
                judge workers by their measured work.
            drained: The workers that should get no work.

        Returns:
            The state of every worker, and the moves, which the assignment already includes.
        """

    @abstractmethod
    def save(self) -> dict[str, Any] | None:
        """Return the state as a dictionary for JSON; None if there is no state."""


class FixedOwners(Judgment):
    """Owners that never change: each virtual worker is a task, and any free task slot runs it.

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
    """Owners that change: virtual workers move between workers by the rules of a delegation.

    One source side represents all sources, because they follow the same version. Each worker side
    gets the fair busy time: the busy time of all workers if load were proportional to speed.
    """

    moves_owners = True
    tasks_per_worker = 1

    def __init__(self, rules: Rules, source: SourceSide, workers: int) -> None:
        self._rules, self._source, self._workers = rules, source, workers
        self._sides = [rules.worker(slot=1.0) for _ in range(workers)]
        self._slot: list[BatchWork] = []
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
        self._slot.append(work)

    def decide(
        self, slot: int, shares: Floats | None = None, drained: AbstractSet[int] = frozenset()
    ) -> Decision:
        batches, self._slot = self._slot, []
        owned = self.owned
        moves = self._apply_drained(drained)
        reports = []
        if moves:
            self._forget_work()
        elif not _is_low_load(batches):
            self._measure(batches, owned)
            reports = self._reports(self._expected(shares), slot)
        if reports:
            moves = self._source.acknowledge_all(reports)
            self._forget_work()
        return Decision(self._states(reports), moves)

    def _measure(self, batches: Sequence[BatchWork], owned: Sequence[int]) -> None:
        """Add the work of the slot, rescaled to the current owners.

        The owners in a micro-batch differ if it began before the last decision.
        """
        for work in batches:
            self._work.add(work, self._owned_in.get(work.version, owned), owned)

    def _expected(self, shares: Floats | None) -> ExpectedWork:
        if shares is None:
            return self._work.rescaled()
        return self._work.planned(self.owners, shares)

    def _reports(self, expected: ExpectedWork, slot: int) -> list[tuple[int, Report]]:
        """Return the report of every worker whose speed is known; none if there is little work."""
        seconds, measurements = self._work.seconds, expected.measurements()
        fair = fair_busy_time(measurements)
        few = self._work.messages < LEAST_MESSAGES * len(self._assignment.workers)
        if fair is None or fair < LEAST_FAIR_BUSY or few:
            return []
        reports = []
        for worker in self._assignment.workers:
            if not expected.is_known[worker]:
                continue
            side = self._sides[worker] = self._side_for(worker, seconds)
            owned = self._assignment.count(worker)
            # The time is derived from the slot, so it never decreases as a machine's clock may.
            report = side.report(measurements[worker], owned, slot * seconds, fair_busy=fair)
            if report is not None:
                reports.append((worker, report))
        return reports

    def _side_for(self, worker: int, seconds: float) -> WorkerSide:
        """Return the worker side with the length of the current slot.

        A worker side expects slots of one length, but slots of micro-batches differ in length.
        Rules that compare the busy time with the length of the slot need the current one.
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
        """Add workers that are no longer drained, then remove drained ones; one worker remains."""
        moves: list[Move] = []
        there = set(self._assignment.workers)
        for worker in sorted(set(range(self._workers)) - drained - there):
            moves += self._source.add_worker(worker)
            self._sides[worker] = self._rules.worker(slot=1.0)
        for worker in sorted(there & drained):
            if len(self._assignment.workers) > 1:
                moves += self._source.remove_worker(worker)
        return moves

    def _forget_work(self) -> None:
        self._work = MeasuredWork(self._workers)

    def save(self) -> dict[str, Any]:
        return self._source.save()


def _is_low_load(batches: Sequence[BatchWork]) -> bool:
    """Return whether the load of a slot with these micro-batches is low."""
    busy = np.sum([work.busy for work in batches], axis=0)
    return is_low_load(float(np.max(busy)), sum(work.seconds for work in batches))
