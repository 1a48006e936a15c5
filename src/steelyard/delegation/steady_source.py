"""The source side of the steady delegation, which pairs workers with opposite requests.

Reports enter; moves of virtual workers leave. A busy worker offers virtual workers, and an idle
worker asks for them. If no worker is idle, normal workers with room take them.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from steelyard.assignment import Assignment, Move
from steelyard.delegation.base import SourceSide
from steelyard.delegation.signals import Report, Signal
from steelyard.delegation.standing import FIRST_PAUSE, UNKNOWN, Standing

if TYPE_CHECKING:
    from steelyard.delegation.steady import SteadyRules

_RECENT = 1
"""The age in slots up to which a request or a report is valid."""

_SINGLE_BUSY_SLOTS = 8
"""The slots after which a worker that stays busy with a single virtual worker loses it."""

_LONGEST_PAUSE = 1024
"""The most slots until a worker without virtual workers gets one again."""

_GROWTH = 3
"""An idle worker grows by at most 1 / `_GROWTH` per slot, so that it does not overshoot."""

_MEMORY = 64
"""The slots for which a source remembers the number of virtual workers that made a worker busy."""


class SteadySource(SourceSide):
    """A source side that lets requests grow while they are met, and pairs opposite requests."""

    def __init__(self, rules: "SteadyRules", assignment: Assignment) -> None:
        super().__init__(assignment)
        self._rules = rules
        self._standings: dict[int, Standing] = {}
        for worker in assignment.workers:
            self._standings[worker] = Standing()
        # Workers by request and state, so that a report does not search all workers.
        self._takers: set[int] = set()
        self._givers: set[int] = set()
        self._normal: set[int] = set()
        self._paused: set[int] = set()
        self._refresh_ownership()

    @property
    def has_pending_giver(self) -> bool:
        return bool(self._givers)

    def _join(self, worker: int) -> None:
        self._standings[worker] = Standing()
        self._refresh_ownership()

    def _leave(self, worker: int) -> None:
        del self._standings[worker]
        self._refresh_ownership()

    def _refresh_ownership(self) -> None:
        """Drop all requests and set the pauses, after a worker joined or left.

        A request may exceed the virtual workers that its worker owns now. Exactly the workers
        without virtual workers are paused.
        """
        for worker, standing in self._standings.items():
            standing.request = 0
            if self.assignment.count(worker):
                standing.retry = -1
            elif standing.retry < 0:
                standing.retry = max(standing.slot, 0)
        self._sort_standings()

    def _sort_standings(self) -> None:
        standings = self._standings.items()
        self._takers = {worker for worker, standing in standings if standing.request > 0}
        self._givers = {worker for worker, standing in standings if standing.request < 0}
        self._normal = {w for w, standing in standings if standing.state is Signal.NORMAL}
        self._paused = {worker for worker, standing in standings if standing.retry >= 0}

    def _set_request(self, worker: int, request: int) -> None:
        self._standings[worker].request = request
        self._takers.discard(worker)
        self._givers.discard(worker)
        if request:
            (self._takers if request > 0 else self._givers).add(worker)

    def _drop_requests(self) -> None:
        for worker in [*self._takers, *self._givers]:
            self._set_request(worker, 0)

    def _rationed(self, busy: list[tuple[int, Report]]) -> list[tuple[int, Report]]:
        """Divide the room among the busy workers in proportion to their offers, if it is scarce.

        The busiest worker determines the length of a slot, so helping only some has no effect.
        """
        offered = sum(report.by for _, report in busy)
        if not offered:
            return busy
        room = sum(self._standings[other].request for other in self._takers)
        room += sum(rooms for _, rooms in self._reported_rooms(busy[0][1].slot))
        part = min(1.0, room / offered)
        return [
            (worker, replace(report, by=max(1, round(part * report.by))) if report.by else report)
            for worker, report in busy
        ]

    def _react(self, worker: int, report: Report) -> list[Move]:
        standing = self._standings[worker]
        owned = self.assignment.count(worker)
        self._note(worker, standing, report)
        self._learn(standing, owned)
        if owned and report.state is not Signal.BUSY:
            standing.pause = FIRST_PAUSE  # the worker copes, so its next pause is short again
        if standing.retry >= 0:  # the worker is paused and has no virtual workers
            return []
        # The report does not include the moves that other reports caused at the end of the slot.
        traded = standing.traded_in(report.slot)
        moves: list[Move] = []
        if report.state is Signal.IDLE:
            standing.step = min(standing.step, max(1, owned // _GROWTH))
            request = report.by or standing.step
            self._set_request(worker, max(0, request - max(0, traded)))
            moves += self._match(worker)
        elif report.state is Signal.BUSY:
            request = self._request_of_busy(standing, owned, report.by)
            self._set_request(worker, -max(0, request - max(0, -traded)))
            moves += self._retry_paused(worker)
            moves += self._match(worker)
            moves += self._give_to_normal(worker, compared=report.by > 0)
        standing.met = bool(moves) and standing.request == 0
        return moves

    def _note(self, worker: int, standing: Standing, report: Report) -> None:
        same = standing.state is report.state and abs(report.slot - standing.slot) <= 2
        if not same:
            standing.since = report.slot
            standing.unmet_slots = 0
        if report.state is Signal.NORMAL or not same:
            standing.step = 1
        elif standing.met:
            standing.step *= 2
        if standing.request:
            self._set_request(worker, 0)  # the new report replaces the earlier request
        standing.met = False
        standing.slot, standing.state = report.slot, report.state
        standing.room = report.by if report.state is Signal.NORMAL else 0
        (self._normal.add if report.state is Signal.NORMAL else self._normal.discard)(worker)

    def _learn(self, standing: Standing, owned: int) -> None:
        """Remember the number of virtual workers that made a worker busy, or forget it."""
        if abs(standing.slot - standing.too_many_slot) > _MEMORY:
            standing.too_many = UNKNOWN
        measured_with = owned - standing.traded_in(standing.slot)
        if standing.state is Signal.BUSY:
            standing.too_many = min(standing.too_many, measured_with)
            standing.too_many_slot = standing.slot
        elif standing.state is Signal.IDLE and measured_with >= standing.too_many:
            standing.too_many = UNKNOWN

    def _request_of_busy(self, standing: Standing, owned: int, by: int) -> int:
        standing.single_busy_slots = standing.single_busy_slots + 1 if owned == 1 else 0
        floor = 0 if standing.single_busy_slots >= _SINGLE_BUSY_SLOTS else 1
        standing.step = min(standing.step, max(1, owned // 2))
        return min(by or standing.step, owned - floor)

    def _match(self, worker: int) -> list[Move]:
        """Trade with workers that have the opposite request, the longest waiting first."""
        mine = self._standings[worker]
        moves: list[Move] = []
        for other in self._waiting_for(worker):
            if mine.request == 0:
                break
            theirs = self._standings[other]
            count = min(abs(mine.request), abs(theirs.request))
            giver, taker = (worker, other) if mine.request < 0 else (other, worker)
            moves += self._trade(giver, taker, count, mine.slot)
            for partner, standing in ((worker, mine), (other, theirs)):
                met = -count if standing.request > 0 else count
                self._set_request(partner, standing.request + met)
            theirs.met = theirs.request == 0
        return moves

    def _trade(self, giver: int, taker: int, count: int, slot: int) -> list[Move]:
        for worker, change in ((giver, -count), (taker, count)):
            standing = self._standings[worker]
            standing.traded = standing.traded_in(slot) + change
            standing.traded_slot = slot
        moves = self.assignment.give(giver, taker, count)
        self._standings[taker].retry = -1
        self._paused.discard(taker)
        if self.assignment.count(giver) == 0:
            self._pause(giver, slot)
        return moves

    def _waiting_for(self, worker: int) -> list[int]:
        mine = self._standings[worker]
        if mine.request == 0:
            return []
        waiting = [
            (standing.since, other)
            for other in (self._takers if mine.request < 0 else self._givers)
            if abs((standing := self._standings[other]).slot - mine.slot) <= _RECENT
        ]
        # Among equal waiting times, the smallest taker or the largest giver comes first. Each
        # partner trades at least one, so a request for n virtual workers needs at most n partners.
        sign = -1 if mine.request > 0 else 1
        first = heapq.nsmallest(
            abs(mine.request),
            waiting,
            key=lambda pair: (pair[0], sign * self.assignment.count(pair[1]), pair[1]),
        )
        return [other for _, other in first]

    def _give_to_normal(self, worker: int, *, compared: bool) -> list[Move]:
        """Give virtual workers to normal workers, if no worker is idle for `patience` slots.

        A normal worker takes the number that it reported or, without a comparison, a number that
        raises its utilization by half of the band between the thresholds.
        """
        mine = self._standings[worker]
        if mine.request == 0:
            mine.unmet_slots = 0
            return []
        mine.unmet_slots += 1
        if mine.unmet_slots < self._rules.patience:
            return []
        moves: list[Move] = []
        rooms = self._reported_rooms(mine.slot) if compared else self._guessed_rooms(mine.slot)
        for other, room in rooms:
            if mine.request == 0:
                break
            count = min(-mine.request, room - self._standings[other].traded_in(mine.slot))
            if count > 0:
                moves += self._trade(worker, other, count, mine.slot)
                self._set_request(worker, mine.request + count)
        return moves

    def _reported_rooms(self, slot: int) -> list[tuple[int, int]]:
        """Return the normal workers that reported room, and their room, the largest first."""
        normal = ((other, self._standings[other]) for other in self._normal)
        rooms = [(w, s.room) for w, s in normal if abs(s.slot - slot) <= _RECENT and s.room]
        return sorted(rooms, key=lambda pair: (-pair[1], pair[0]))

    def _guessed_rooms(self, slot: int) -> list[tuple[int, int]]:
        """Return the normal workers that were not busy with one more, and their estimated room.

        The worker with the most virtual workers comes first.
        """
        part = (self._rules.high - self._rules.low) / 2
        counts = [
            (other, count)
            for other in self._normal
            if abs((standing := self._standings[other]).slot - slot) <= _RECENT
            and (count := self.assignment.count(other)) + 1 < standing.too_many
        ]
        counts.sort(key=lambda pair: (-pair[1], pair[0]))
        return [(other, max(1, int(count * part + 1e-9))) for other, count in counts]

    def _pause(self, worker: int, slot: int) -> None:
        standing = self._standings[worker]
        self._paused.add(worker)
        standing.retry = slot + standing.pause
        standing.pause = min(2 * standing.pause, _LONGEST_PAUSE)
        standing.single_busy_slots = 0

    def _retry_paused(self, giver: int) -> list[Move]:
        """Give one virtual worker of a busy worker to each worker whose pause is over."""
        mine = self._standings[giver]
        moves: list[Move] = []
        for other in sorted(self._paused):
            due = self._standings[other].retry <= mine.slot and other != giver
            if due and mine.request < 0 and self.assignment.count(giver) > 1:
                moves += self._trade(giver, other, 1, mine.slot)
                self._set_request(giver, mine.request + 1)
        return moves

    def save(self) -> dict[str, Any]:
        standings = [[worker, standing.save()] for worker, standing in self._standings.items()]
        return {**super().save(), "standings": standings}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        super()._restore(saved)
        fields: Iterable[tuple[int, dict[str, Any]]] = saved["standings"]
        self._standings = {worker: Standing.resume(standing) for worker, standing in fields}
        self._sort_standings()
