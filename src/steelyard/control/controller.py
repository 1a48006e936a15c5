"""The driver's part of the control loop: reports enter; versions and the history leave."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from steelyard.assignment import Move
from steelyard.control.history import Slot, WorkerSlot
from steelyard.control.judgment import Decision, DelegatedOwners, FixedOwners, Judgment
from steelyard.control.publishing import Publisher
from steelyard.control.reports import SourceReport, WorkerReport, latency_quantile
from steelyard.control.resuming import Progress, first_assignment, resumed, resumed_source
from steelyard.control.slot_totals import Floats, SlotTotals
from steelyard.control.store import ControlStore
from steelyard.control.stream_planner import StreamPlanner
from steelyard.control.version import ControlVersion
from steelyard.delegation import Rules, SteadyRules
from steelyard.plans import Balance, Planner
from steelyard.plans.task_sizes import capacities_of_tasks

_OWNERS_EVERY = 50
"""A record of all owners is written once in this many slots. The history always keeps more slots,
so it always holds such a record."""

_RULES = SteadyRules(proportional=True, patience=1, band=0.02)
"""The default rules. All workers report at the same time, so a busy worker needs no patience."""


@dataclass(frozen=True)
class SlotLength:
    """The length of a slot: it ends with the first micro-batch that reaches both minimums."""

    batches: int = 1
    """The least number of micro-batches in a slot."""
    seconds: float = 0.0
    """The least total time of the micro-batches in a slot."""

    def is_over(self, batches: int, seconds: float) -> bool:
        return batches >= self.batches and seconds >= self.seconds


class Controller:
    """The control loop, which learns from every micro-batch and decides once a slot.

    The controller adds up reports (`SlotTotals`), judges workers by the sums (`Judgment`), and
    publishes the result (`Publisher`).

    With `delegation`, virtual workers move between workers by `rules`. The controller judges a
    worker by its expected work: its seconds per message, times the messages that the newest plan
    has for it. A new plan is enough to follow a change of hot keys, so no virtual worker moves for
    that. If messages do not follow the plan, or have weights, pass `foresees=False`. The controller
    then rescales the measured work of a worker to the virtual workers that it owns now.

    Without `delegation`, each virtual worker is a task, any free task slot runs the next task, and
    the controller updates only the plan.

    Args:
        workers: The number of workers.
        virtual_workers: The number of virtual workers of each worker at the start.
        delegation: Whether virtual workers move between workers.
        store: The control path; None to keep decisions in this process.
        slot: The length of a slot.
        epsilon: The imbalance that a plan allows.
        buckets: The number of buckets that keys are counted in.
        decay: The factor by which earlier counts are multiplied at the end of each slot.
        capacities: A first estimate of the relative speeds of the workers.
        rules: The rules of the delegation; None for the default rules.
        foresees: Whether to judge workers by their expected work instead of their measured work.
    """

    def __init__(
        self,
        workers: int,
        virtual_workers: int,
        *,
        delegation: bool,
        store: ControlStore | None = None,
        slot: SlotLength = SlotLength(),  # noqa: B008  # frozen
        epsilon: float = 0.01,
        buckets: int = 8192,
        decay: float = Balance.decay,
        capacities: Sequence[float] | None = None,
        rules: Rules | None = None,
        foresees: bool = True,
    ) -> None:
        self.workers, self.virtual_workers, self.foresees = workers, virtual_workers, foresees
        self._slot_length, self._publisher = slot, Publisher(store)
        newest = self._publisher.newest()
        sizes = None if delegation else capacities_of_tasks(workers, virtual_workers)

        def judgment(learned: Mapping[str, Any]) -> Judgment:
            if not delegation:
                return FixedOwners(workers, virtual_workers)
            fresh = first_assignment(workers, virtual_workers, capacities)
            source = resumed_source(rules or _RULES, fresh, learned.get("source"))
            return DelegatedOwners(rules or _RULES, source, workers)

        def parts(learned: Mapping[str, Any]) -> tuple[StreamPlanner, Judgment, Progress]:
            fresh = Planner(workers * virtual_workers, epsilon, buckets, sizes, decay=decay)
            plan = None if newest is None else newest.plan
            planner = StreamPlanner.resume(fresh, learned.get("planner"), plan)
            return planner, judgment(learned), Progress.resume(learned)

        learned = self._publisher.learned()
        self._planner, self._judgment, self._progress = resumed(parts, learned)
        self.last_batch = -1
        """The number of the last micro-batch that was added; -1 if there is none."""
        self._held: dict[int, int] = {}
        self._begin_slot()
        self._publisher.begin(newest, self._planner.plan, self._judgment.owners)
        if self.version is not None:
            self._judgment.remember(self.version.number)

    @property
    def store(self) -> ControlStore | None:
        """The control path, to which versions and the history are written."""
        return self._publisher.store

    @property
    def version(self) -> ControlVersion | None:
        """The version that sources should follow."""
        return self._publisher.version

    @property
    def history(self) -> deque[Slot]:
        """The latest slots of this controller, in order of time."""
        return self._publisher.history

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan, from counts of this run or of an earlier one."""
        return self._planner.plan is not None

    @property
    def waiting(self) -> int:
        """The partial states that workers hold since the last micro-batch that was added."""
        return sum(self._held.values())

    def begin_run(self) -> None:
        """Accept micro-batches from number 0 on, because a new run of the query begins."""
        self.last_batch = -1

    def plan_from(self, counts: Floats) -> None:
        """Publish a plan from counts of earlier messages, unless there is a plan already."""
        if not self.has_plan:
            self._planner.update(counts)
            self._publisher.publish(self._planner.plan, self._judgment.owners)
            self._judgment.remember(self._publisher.number)

    def finish_batch(
        self,
        batch: int,
        seconds: float,
        sources: Iterable[SourceReport],
        workers: Iterable[WorkerReport],
        now: float,
    ) -> Slot | None:
        """Add the reports of a finished micro-batch.

        Repeated reports, and reports of other micro-batches, are ignored.

        Args:
            batch: The number of the micro-batch.
            seconds: The duration of the micro-batch.
            sources: The reports of its source tasks.
            workers: The reports of its workers.
            now: The current time, in seconds since 1970.

        Returns:
            The slot that ended with this micro-batch; None if the slot is not over.
        """
        if batch <= self.last_batch:
            return None
        reports = list(workers)
        self._held.update({r.worker: r.held for r in reports if r.batch == batch})
        work = self._totals.add(batch, seconds, sources, reports)
        self._judgment.add(work)
        is_over = self._slot_length.is_over(self._totals.batches, self._totals.seconds)
        slot = self._end_slot(batch, now) if is_over else None
        self.last_batch = batch  # set last, so that a waiting thread finds the slot in the history
        return slot

    def _begin_slot(self) -> None:
        tasks = self._judgment.tasks_per_worker
        self._totals = SlotTotals(self.workers, tasks, self._planner.buckets)

    def _end_slot(self, batch: int, now: float) -> Slot:
        self._progress = replace(self._progress, slots=self._progress.slots + 1)
        owned, owners = self._judgment.owned, self._recorded_owners()
        self._planner.update(self._totals.counts)
        decision = self._decide()
        self._publisher.publish(self._planner.plan, self._judgment.owners)
        self._judgment.remember(self._publisher.number)
        self._progress = replace(
            self._progress,
            messages=self._progress.messages + self._totals.messages,
            moves=self._progress.moves + len(decision.moves),
        )
        workers = self._totals.worker_slots(decision.states, owned)
        slot = self._slot(batch, now, workers, decision.moves, owners)
        self._publisher.record(slot, self._learned())
        self._begin_slot()
        return slot

    def _decide(self) -> Decision:
        drained = self._publisher.drained() if self._judgment.moves_owners else set()
        return self._judgment.decide(self._progress.slots, self._planned_shares(), drained)

    def _planned_shares(self) -> Floats | None:
        plan = self._planner.plan if self.foresees else None
        return None if plan is None else plan.shares

    def _recorded_owners(self) -> tuple[int, ...]:
        """Return all owners in the first slot and every `_OWNERS_EVERY` slots, if owners move."""
        is_due = not self.history or self._progress.slots % _OWNERS_EVERY == 0
        if not self._judgment.moves_owners or not is_due:
            return ()
        return tuple(self._judgment.owners.tolist())

    def _slot(
        self,
        batch: int,
        now: float,
        workers: tuple[WorkerSlot, ...],
        moves: Sequence[Move],
        owners: tuple[int, ...],
    ) -> Slot:
        totals, progress = self._totals, self._progress
        latencies = totals.latencies.sum(axis=0)
        return Slot(
            slot=progress.slots,
            batch=batch,
            time=now,
            seconds=totals.seconds,
            working=totals.working,
            messages=totals.messages,
            workers=workers,
            moves=tuple((move.virtual, move.giver, move.taker) for move in moves),
            hot_keys=totals.hot_keys(),
            version=self._publisher.number,
            p50=latency_quantile(latencies, 0.5),
            p99=latency_quantile(latencies, 0.99),
            latencies=tuple((int(i), int(latencies[i])) for i in np.flatnonzero(latencies)),
            messages_so_far=progress.messages,
            moves_so_far=progress.moves,
            owners=owners,
        )

    def _learned(self) -> dict[str, Any]:
        return {
            **asdict(self._progress),
            "workers": self.workers,
            "planner": self._planner.save(),
            "source": self._judgment.save(),
        }
