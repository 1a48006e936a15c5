"""The driver's part: reports of micro-batches enter, versions and the history of slots leave."""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.assignment import Assignment, Move
from steelyard.control.history import HotKeyShare, Slot, WorkerSlot
from steelyard.control.reports import (
    LATENCY_BINS,
    SourceReport,
    WorkerReport,
    latency_quantile,
)
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.delegation import Measurement, Rules, Signal, SourceSide, SteadyRules, fair_busy_time
from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.task_sizes import capacities_of_tasks

_log = logging.getLogger("steelyard")

_WRONG_SHAPE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a file of our own raises if somebody else wrote it."""

_HOT_KEYS = 10

_HISTORY = 1000
"""Slots that are remembered."""

_VERSIONS = 32
"""Versions of which it is remembered who owned how many virtual workers."""

_OWNERS_TOLD = 50
"""Slots after which the history tells the owners again: less than the least that is kept."""

_LEAST_BUSY = 0.1
"""Seconds of fair work: with less it cannot be told who is busy, and more slots are waited for."""


@dataclass(frozen=True)
class SlotLength:
    """How long a slot is: so many micro-batches, or the first of them after so many seconds."""

    batches: int = 1
    seconds: float = 0.0

    def is_over(self, batches: int, seconds: float) -> bool:
        return batches >= self.batches and seconds >= self.seconds


class Controller:
    """Learns from every micro-batch and decides once a slot.

    With `delegation` virtual workers move between workers: each worker compares its busy time with
    the fair one, that all would have had if each had got messages as it is fast, and says idle,
    normal or busy. It is not what a worker did that counts, but what it would have to do next: the
    seconds that it took for a message, times the messages that the newest plan has for it. A plan
    mends by itself what other hot keys did, and no virtual worker need move for it. Where messages
    do not go by plan, or are weighed (`foresees=False`), what a worker did is scaled from the
    virtual workers of then to those of now, as a micro-batch may have begun before the last one was
    heard of. Without `delegation` (virtual workers are tasks, and whoever is free takes the next)
    only the plan is renewed.
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
        decay: float = 0.5,
        capacities: Sequence[float] | None = None,
        rules: Rules | None = None,
        foresees: bool = True,
    ) -> None:
        self.workers, self.virtual_workers = workers, virtual_workers
        # Reports of a slot come together and tell of all room: nobody need wait for an idle one.
        self._rules = rules or SteadyRules(proportional=True, patience=1, band=0.02)
        self.store, self._slot_length, self.foresees = store, slot, foresees
        self._unwritten: set[str] = set()
        learned = (store.learned() if store is not None else None) or {}
        newest = store.newest() if store is not None else None
        sizes = None if delegation else capacities_of_tasks(workers, virtual_workers)
        settings = (workers * virtual_workers, epsilon, buckets, sizes)
        fresh = _first_assignment(workers, virtual_workers, capacities) if delegation else None
        plan = None if newest is None else newest.plan
        try:
            self._resume(learned, Planner(*settings, decay=decay), plan, fresh)
        except _WRONG_SHAPE:
            if not learned:
                raise
            _log.warning("control: learned.json cannot be understood; starting without it")
            self._resume({}, Planner(*settings, decay=decay), plan, fresh)
        self._sides = [self._rules.worker(slot=1.0) for _ in range(workers)]
        self.last_batch = -1
        """The last micro-batch whose reports were used."""
        self.history: deque[Slot] = deque(maxlen=_HISTORY)
        self._owned_in: dict[int, list[int]] = {}
        self._begin_slot()
        self._begin_judging()
        self.version: ControlVersion | None = None
        newest = newest if newest is not None and newest.says(*self._wanted()) else None
        # A path that another query uses is not written to before it is known to be ours.
        is_ours = store is None or not store.owner()
        self.version = newest or (self._published() if is_ours else None)
        if self.version is not None:
            self._owned_in[self.version.number] = self._owned()

    def _resume(
        self,
        learned: Mapping[str, Any],
        planner: Planner,
        plan: RoutingPlan | None,
        assignment: Assignment | None,
    ) -> None:
        """Take over what was learned, as far as it fits; the assignment is for delegation."""
        self._planner = _resumed_planner(planner, learned, plan)
        self._source: SourceSide | None = None
        if assignment is not None:
            self._source = _resumed_source(self._rules, assignment, learned)
        self._slots = int(learned.get("slots", 0))
        self._has_counted = bool((learned.get("planner") or {}).get("has_counted"))
        self._so_far = (int(learned.get("messages", 0)), int(learned.get("moves", 0)))

    def begin_run(self) -> None:
        """A query has begun, perhaps anew: micro-batches may be numbered from 0 again."""
        self.last_batch = -1

    def finish_batch(
        self,
        batch: int,
        seconds: float,
        sources: Iterable[SourceReport],
        workers: Iterable[WorkerReport],
        now: float,
    ) -> Slot | None:
        """Take note of a micro-batch that is done; the slot, if it ended with it.

        Reports that come again, and those of other batches, do not count.
        """
        if batch <= self.last_batch:
            return None
        followed = 0
        for source in {(r.source, r.part): r for r in sources if r.batch == batch}.values():
            followed = max(followed, source.version)
            if source.counts.size == self._counts.size:
                self._counts += source.counts
                self._hot.update(dict(source.hot))
        keys, size, rows, busy = (np.zeros(self.workers) for _ in range(4))
        began, ended = np.inf, 0.0
        for report in {r.worker: r for r in workers if r.batch == batch}.values():
            if 0 <= report.worker < self.workers * self._tasks:
                began, ended = min(began, report.began), max(ended, report.ended)
                worker = report.worker % self.workers
                keys[worker] += report.keys
                size[worker] += report.bytes
                rows[worker] += report.rows
                busy[worker] += report.busy
                for latency, messages in report.latencies:
                    self._latencies[worker, latency] += messages
        self._rows += rows
        self._busy += busy
        owned = np.array(self._owned(), float)
        then = np.array(self._owned_in.get(followed, owned), float)
        # Who had nothing in one of the micro-batches cannot be compared with who had something.
        grown = np.divide(owned, then, out=np.zeros(self.workers), where=then > 0)
        self._is_known &= then > 0
        self._rows_then += rows
        self._busy_then += busy
        self._rows_now += rows * grown
        self._busy_now += busy * grown
        np.maximum(self._keys, keys, out=self._keys)
        np.maximum(self._bytes, size, out=self._bytes)
        np.maximum(self._backlog, backlog(rows, busy), out=self._backlog)
        self._working += max(0.0, ended - began)
        self._batches += 1
        self._seconds += seconds
        is_over = self._slot_length.is_over(self._batches, self._seconds)
        slot = self._end_slot(batch, now) if is_over else None
        self.last_batch = batch  # at the end: whoever waits for it finds the slot in the history
        return slot

    @property
    def _tasks(self) -> int:
        """Workers report by task where virtual workers are tasks."""
        return 1 if self._source is not None else self.virtual_workers

    def _begin_slot(self) -> None:
        self._counts = np.zeros(self._planner.buckets)
        self._hot: Counter[str] = Counter()
        # Of the workers: sums over the slot, and the most of any micro-batch.
        self._rows, self._busy, self._keys, self._bytes = np.zeros((4, self.workers))
        self._backlog = np.zeros(self.workers)
        self._latencies = np.zeros((self.workers, LATENCY_BINS), np.int64)
        self._batches, self._seconds, self._working = 0, 0.0, 0.0

    def _begin_judging(self) -> None:
        """Forget what workers did until now.

        What they do counts for several slots where these are short, as nothing moves in between.
        """
        self._rows_then, self._busy_then = np.zeros((2, self.workers))
        self._rows_now, self._busy_now = np.zeros((2, self.workers))
        self._is_known = np.ones(self.workers, np.bool_)

    def _end_slot(self, batch: int, now: float) -> Slot:
        self._slots += 1
        owned, owners = self._owned(), self._told_owners()
        if self._counts.any():
            self._planner.update(self._counts)
            self._has_counted = True
        states, moves = self._delegate()
        version = self._published()
        messages = int(self._rows.sum())
        latencies = self._latencies.sum(axis=0)
        self._so_far = (self._so_far[0] + messages, self._so_far[1] + len(moves))
        slot = Slot(
            slot=self._slots,
            batch=batch,
            time=now,
            seconds=self._seconds,
            working=self._working,
            messages=messages,
            workers=tuple(
                self._worker_slot(worker, states[worker], owned[worker])
                for worker in range(self.workers)
            ),
            moves=tuple((move.virtual, move.giver, move.taker) for move in moves),
            hot_keys=self._hot_keys(),
            version=version.number,
            p50=latency_quantile(latencies, 0.5),
            p99=latency_quantile(latencies, 0.99),
            latencies=tuple((int(i), int(latencies[i])) for i in np.flatnonzero(latencies)),
            messages_so_far=self._so_far[0],
            moves_so_far=self._so_far[1],
            owners=owners,
        )
        self.version = version
        if self.store is not None:
            with self._despite_errors("file learned.json"):
                self.store.keep_identity()
                self.store.save_learned(self._learned())
            with self._despite_errors("history"):
                self.store.add_history(slot.to_json())
        self.history.append(slot)
        self._begin_slot()
        return slot

    def _worker_slot(self, worker: int, state: str, owned: int) -> WorkerSlot:
        messages = int(self._rows[worker])
        return WorkerSlot(
            worker=worker,
            messages=messages,
            share=messages / max(1, int(self._rows.sum())),
            utilisation=float(self._busy[worker]) / self._seconds if self._seconds else 0.0,
            state=state,
            virtual_workers=owned,
            keys=int(self._keys[worker]),
            p50=latency_quantile(self._latencies[worker], 0.5),
            p99=latency_quantile(self._latencies[worker], 0.99),
            service=float(self._busy[worker]) / messages if messages else None,
            backlog=float(self._backlog[worker]),
            bytes=int(self._bytes[worker]),
        )

    def _hot_keys(self) -> tuple[HotKeyShare, ...]:
        total = max(1, int(self._rows.sum()))
        return tuple(HotKeyShare(k, n / total) for k, n in self._hot.most_common(_HOT_KEYS))

    def _owned(self) -> list[int]:
        if self._source is None:
            return [self.virtual_workers] * self.workers
        assignment = self._source.assignment
        there = set(assignment.workers)
        return [assignment.count(w) if w in there else 0 for w in range(self.workers)]

    def _told_owners(self) -> tuple[int, ...]:
        """The owners, in slots of which the history tells them; none where they never move."""
        is_told = not self.history or self._slots % _OWNERS_TOLD == 0
        if self._source is None or not is_told:
            return ()
        return tuple(self._source.assignment.owners.tolist())

    def _delegate(self) -> tuple[list[str], list[Move]]:
        """The state of every worker, and the moves that these led to."""
        if self._source is None:
            return [Signal.NORMAL.value] * self.workers, []
        moves = self._heed_drained(self._source)
        if moves:
            self._begin_judging()
        messages, seconds, known = self._ahead(self._source.assignment)
        seen = [
            Measurement(arrivals=float(rows), busy=float(busy)) if is_known else Measurement()
            for rows, busy, is_known in zip(messages, seconds, known, strict=True)
        ]
        states = ["drained"] * self.workers
        for worker in self._source.assignment.workers:
            states[worker] = Signal.NORMAL.value
        fair = fair_busy_time(seen)
        if fair is None or fair < _LEAST_BUSY:
            return states, moves
        reports = []
        for worker in self._source.assignment.workers:
            if not known[worker]:
                continue
            owned = self._source.assignment.count(worker)
            # The clock is the number of the slot: it never goes back, whatever the machine's does.
            side = self._sides[worker]
            report = side.report(seen[worker], owned, float(self._slots), fair_busy=fair)
            if report is not None:
                states[worker] = report.state.value
                reports.append((worker, report))
        moves += self._source.acknowledge_all(reports)
        self._begin_judging()
        return states, moves

    def _ahead(
        self, assignment: Assignment
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Messages and busy time of every worker, were all to come again; and of whom it is known.

        Who is planned messages, and had none, is as fast as nobody knows.
        """
        if not (self.foresees and self._has_counted):
            return self._rows_now, self._busy_now, self._is_known
        shares = np.bincount(assignment.owners, self._planner.plan.shares, self.workers)
        planned = shares * self._rows_then.sum()
        had = self._rows_then > 0
        each = np.divide(self._busy_then, self._rows_then, out=np.zeros(self.workers), where=had)
        owns = np.bincount(assignment.owners, minlength=self.workers) > 0
        return planned, planned * each, had | (owns & (planned == 0))

    def _heed_drained(self, source: SourceSide) -> list[Move]:
        """Workers that were drained by hand give all they have; those no longer so come back."""
        wanted = self.store.drained() if self.store is not None else set()
        moves: list[Move] = []
        for worker in range(self.workers):
            is_there = worker in source.assignment.workers
            if worker in wanted and is_there and len(source.assignment.workers) > 1:
                moves += source.remove_worker(worker)
            elif worker not in wanted and not is_there:
                moves += source.add_worker(worker)
                self._sides[worker] = self._rules.worker(slot=1.0)
        return moves

    def _published(self) -> ControlVersion:
        """What sources should follow from now on, published if it is new or was lost."""
        plan, owners = self._wanted()
        last = self.version
        latest = last.number if last is not None else 0
        if self.store is not None:
            latest = self.store.latest()
        if last is not None and latest == last.number and last.says(plan, owners):
            return last
        version = ControlVersion(max(latest, last.number if last else 0) + 1, plan, owners)
        self._owned_in[version.number] = self._owned()
        self._owned_in.pop(version.number - _VERSIONS, None)
        if self.store is not None:
            with self._despite_errors("newest version"):
                self.store.publish(version)
        return version

    @contextmanager
    def _despite_errors(self, what: str) -> Iterator[None]:
        """Go on if the control path cannot be written: balance suffers, results do not."""
        try:
            yield
            self._unwritten.discard(what)
        except OSError as error:
            if what not in self._unwritten:
                self._unwritten.add(what)
                _log.warning("control: the %s cannot be written: %s", what, error)

    def _wanted(self) -> tuple[RoutingPlan | None, NDArray[np.int32]]:
        return (self._planner.plan if self._has_counted else None), self._owners()

    def _owners(self) -> NDArray[np.int32]:
        if self._source is not None:
            return self._source.assignment.owners
        return np.arange(self._planner.bins, dtype=np.int32)

    def _learned(self) -> dict[str, Any]:
        # Its plan is in the newest version, and its settings are given anew.
        planner = {
            "buckets": self._planner.buckets,
            "counts": [float(f"{count:.4g}") for count in self._planner.counts],
            "has_counted": self._has_counted,
        }
        source = None if self._source is None else self._source.save()
        messages, moves = self._so_far
        return {
            "slots": self._slots,
            "messages": messages,
            "moves": moves,
            "workers": self.workers,
            "planner": planner,
            "source": source,
        }


def backlog(rows: NDArray[np.float64], busy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Messages of a micro-batch that each worker still has when the mean worker has none.

    All messages of a micro-batch are there when it begins, so whoever is busy for longer than the
    mean has, from then on, a queue.

    >>> backlog(np.array([100.0, 100.0]), np.array([1.0, 4.0])).tolist()
    [0.0, 37.5]
    """
    left = np.zeros(rows.size)
    np.divide(rows * np.maximum(0.0, busy - busy.mean()), busy, out=left, where=busy > 0)
    return left


def _resumed_planner(
    fresh: Planner, learned: Mapping[str, Any], plan: RoutingPlan | None
) -> Planner:
    """What was counted, if the buckets are the same; the plan too, if the virtual workers are."""
    saved = learned.get("planner")
    if saved is None or saved["buckets"] != fresh.buckets:
        return fresh
    if plan is not None and (plan.bins, plan.buckets) == (fresh.bins, fresh.buckets):
        return Planner.resume({**fresh.save(), "counts": saved["counts"], "plan": plan.to_json()})
    if any(saved["counts"]):
        fresh.update(saved["counts"])
    return fresh


def _resumed_source(rules: Rules, fresh: Assignment, learned: Mapping[str, Any]) -> SourceSide:
    """The assignment that was learned, if it is for as many workers and virtual workers."""
    saved = learned.get("source")
    if saved is not None:
        known = Assignment.resume(saved["assignment"])
        same_workers = set(known.workers) <= set(fresh.workers)
        if same_workers and known.virtual_workers == fresh.virtual_workers:
            return rules.resume_source(saved)
    return rules.source(fresh)


def _first_assignment(
    workers: int, virtual_workers: int, capacities: Sequence[float] | None
) -> Assignment:
    """Equal, or in proportion to what is hinted at; everybody gets one at least."""
    if capacities is None:
        return Assignment.equal(workers, virtual_workers)
    rest = workers * virtual_workers - workers
    ends = np.cumsum(capacities) / np.sum(capacities) * rest + np.arange(1, workers + 1)
    cuts = [0, *np.rint(ends).astype(int).tolist()]
    return Assignment({w: range(cuts[w], cuts[w + 1]) for w in range(workers)})
