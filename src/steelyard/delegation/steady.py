"""The steady delegation: the paper's signals, with rules that converge and stay there."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from steelyard.assignment import Assignment, Move
from steelyard.delegation.base import Rules, SourceSide, WorkerSide
from steelyard.delegation.measures import Measure, Work
from steelyard.delegation.signals import Measurement, Report, Signal
from steelyard.validation import require_between, require_whole

_RECENT = 1
"""A wish counts while it was heard in this slot or in as many before it."""

_LONELY_SLOTS = 8
"""A worker that stays busy with a single virtual worker this long loses that too."""

_QUARANTINE = (16, 1024)
"""Slots until a worker without virtual workers is tried again: at first, and at most."""

_GROWTH = 3
"""An idle worker grows by at most a third a slot, or it would shoot past its share."""

_SUDDEN = 0.2
"""Of its utilisation: a slot that is further off, and compared, is no noise to be smoothed."""

_MEMORY = 64
"""Slots for which it is remembered with how many virtual workers a worker was busy."""

_UNKNOWN = 2**31


@dataclass(frozen=True, kw_only=True)
class SteadyRules(Rules):
    """What a worker says stays one of three states; what is done about it is new.

    A worker smooths its utilisation and knows what one of its virtual workers weighs: it is idle
    only if one more would fit, busy only if one less would not make it idle (or beyond
    `overload`). A source lets a wish grow while it is fully met, forgets it with the next report,
    moves several virtual workers at once, and, where nobody is idle, lets a busy worker give to
    normal ones after `patience` slots. A worker that is busy with a single virtual worker for
    long is left alone for a while, then tried again.

    While sources cannot keep up every worker is busy; then each compares its busy time with a fair
    one and wants to be within `band` of it. It then knows how far off it is as well: with
    `proportional` it tells by how many virtual workers, and all of them move at once, to normal
    workers too if these told that they have room.

    Meant for 20 virtual workers per worker or more (100 is a good number).
    """

    measure: Measure = Work()
    overload: float = 0.95
    smoothing: float = 0.3
    """Weight of the newest slot in the utilisation."""
    patience: int = 2
    band: float = 0.03
    proportional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("overload", self.overload, least=self.high)
        require_between("smoothing", self.smoothing, above=0, most=1)
        require_whole("patience", self.patience, least=1)
        require_between("band", self.band, above=0, most=1)

    def worker(self, slot: float) -> WorkerSide:
        return _SteadyWorker(self, slot)

    def source(self, assignment: Assignment) -> SourceSide:
        return _SteadySource(self, assignment)


class _SteadyWorker(WorkerSide):
    def __init__(self, rules: SteadyRules, slot: float) -> None:
        super().__init__(slot)
        self._rules = rules
        self._utilisation = 0.0
        self._owned: float | None = None
        self._compared = False
        self._newest = Signal.NORMAL

    def _state(
        self, seen: Measurement, owned: float, seconds: float, fair_busy: float | None
    ) -> Signal:
        compare = fair_busy is not None
        if fair_busy is not None:
            newest = seen.busy / fair_busy
        else:
            newest = self._rules.measure.utilisation(seen, seconds)
        # What was measured with other virtual workers, by the other measure, or before a sudden
        # change, says nothing.
        is_sudden = (
            compare
            and self._rules.proportional
            and abs(newest - self._utilisation) > _SUDDEN * self._utilisation
        )
        if owned != self._owned or compare != self._compared or is_sudden:
            self._utilisation = newest
        else:
            self._utilisation += self._rules.smoothing * (newest - self._utilisation)
        self._owned, self._compared = float(owned), compare
        one = self._utilisation / owned if owned else 0.0
        self._newest = self._by_comparison(one) if compare else self._by_thresholds(one)
        return self._newest

    def _by_thresholds(self, one: float) -> Signal:
        rules, u = self._rules, self._utilisation
        if u < rules.low and u + one <= rules.high:
            return Signal.IDLE
        if u > rules.high and (u - one >= rules.low or u > rules.overload):
            return Signal.BUSY
        return Signal.NORMAL

    def _by_comparison(self, one: float) -> Signal:
        # Beyond half of a virtual worker from what is fair, moving one brings it closer; a little
        # more keeps it from coming straight back.
        band = max(self._rules.band, 0.6 * one)
        if self._utilisation < 1 - band:
            return Signal.IDLE
        if self._utilisation > 1 + band:
            return Signal.BUSY
        return Signal.NORMAL

    def _by(self, owned: float) -> int:
        if not (self._rules.proportional and self._compared and self._utilisation and owned):
            return 0
        # It would be fair to have 1 / utilisation of what it has. Half or double of it at most: one
        # odd slot shall not take all away, and what one of few weighs is known badly.
        fair = min(max(owned / self._utilisation, owned / 2), 2 * owned)
        if self._newest is Signal.NORMAL:
            return max(0, round(fair - owned))
        return max(1, round(abs(owned - fair)))

    def save(self) -> dict[str, Any]:
        mine = {
            "utilisation": self._utilisation,
            "owned": self._owned,
            "compared": self._compared,
        }
        return {**super().save(), **mine}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        super()._restore(saved)
        self._utilisation = saved["utilisation"]
        self._owned = saved["owned"]
        self._compared = saved["compared"]


@dataclass
class _Standing:
    """What a source remembers of a worker."""

    slot: int = -10
    """Of the last report."""
    state: Signal = Signal.NORMAL
    since: int = 0
    """The slot in which it came into this state."""
    step: int = 1
    want: int = 0
    """Virtual workers that it still wishes to get, or, if negative, to give."""
    met: bool = False
    """Whether all of its last wish came true."""
    room: int = 0
    """Virtual workers that it can take, as it told, though it is normal."""
    unmet_slots: int = 0
    """Reports in a row as busy with nobody to give to."""
    too_many: int = _UNKNOWN
    """The fewest virtual workers with which it was busy lately."""
    too_many_slot: int = -10
    lonely_slots: int = 0
    """Reports in a row as busy with a single virtual worker."""
    traded: int = 0
    """Virtual workers that it got, less those that it gave, at the end of `traded_slot`."""
    traded_slot: int = -10
    retry: int = -1
    """The slot from which it may be tried again; -1: it is not in quarantine."""
    quarantine: int = _QUARANTINE[0]

    def traded_in(self, slot: int) -> int:
        """What it got, less what it gave, at the end of that slot."""
        return self.traded if self.traded_slot == slot else 0


class _SteadySource(SourceSide):
    def __init__(self, rules: SteadyRules, assignment: Assignment) -> None:
        super().__init__(assignment)
        self._rules = rules
        self._standings: dict[int, _Standing] = {}
        for worker in assignment.workers:
            self._standings[worker] = _Standing()
        # Who is in which standing, so that nobody has to look through all workers.
        self._takers: set[int] = set()
        self._givers: set[int] = set()
        self._normal: set[int] = set()
        self._quarantined: set[int] = set()
        self._heed_ownership()

    @property
    def is_stirred(self) -> bool:
        return bool(self._givers)

    def _join(self, worker: int) -> None:
        self._standings[worker] = _Standing()
        self._heed_ownership()

    def _leave(self, worker: int) -> None:
        del self._standings[worker]
        self._heed_ownership()

    def _heed_ownership(self) -> None:
        """After workers came or went: who has nothing is to be tried, who has something is not.

        Wishes are stale then: a worker may own less than it wished to give.
        """
        for worker, standing in self._standings.items():
            standing.want = 0
            if self.assignment.count(worker):
                standing.retry = -1
            elif standing.retry < 0:
                standing.retry = max(standing.slot, 0)
        self._sort_standings()

    def _sort_standings(self) -> None:
        standings = self._standings.items()
        self._takers = {worker for worker, standing in standings if standing.want > 0}
        self._givers = {worker for worker, standing in standings if standing.want < 0}
        self._normal = {w for w, standing in standings if standing.state is Signal.NORMAL}
        self._quarantined = {worker for worker, standing in standings if standing.retry >= 0}

    def _wish(self, worker: int, want: int) -> None:
        self._standings[worker].want = want
        self._takers.discard(worker)
        self._givers.discard(worker)
        if want:
            (self._takers if want > 0 else self._givers).add(worker)

    def _forget_wishes(self) -> None:
        for worker in [*self._takers, *self._givers]:
            self._wish(worker, 0)

    def _rationed(self, busy: list[tuple[int, Report]]) -> list[tuple[int, Report]]:
        """Where there is less room than they need, each gets its part of it.

        A slot lasts as long as its busiest worker: to help some of them helps nobody.
        """
        wished = sum(report.by for _, report in busy)
        if not wished:
            return busy
        room = sum(self._standings[other].want for other in self._takers)
        room += sum(rooms for _, rooms in self._told_rooms(busy[0][1].slot))
        part = min(1.0, room / wished)
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
            standing.quarantine = _QUARANTINE[0]  # it copes: the next time counts as the first
        if standing.retry >= 0:  # it owns nothing, and is left alone until it is tried again
            return []
        # The report does not know yet what others traded with this worker at the end of its slot.
        traded = standing.traded_in(report.slot)
        moves: list[Move] = []
        if report.state is Signal.IDLE:
            standing.step = min(standing.step, max(1, owned // _GROWTH))
            wish = report.by or standing.step
            self._wish(worker, max(0, wish - max(0, traded)))
            moves += self._match(worker)
        elif report.state is Signal.BUSY:
            wish = self._busy_wish(standing, owned, report.by)
            self._wish(worker, -max(0, wish - max(0, -traded)))
            moves += self._retry_quarantined(worker)
            moves += self._match(worker)
            moves += self._give_to_normal(worker, compared=report.by > 0)
        standing.met = bool(moves) and standing.want == 0
        return moves

    def _note(self, worker: int, standing: _Standing, report: Report) -> None:
        same = standing.state is report.state and abs(report.slot - standing.slot) <= 2
        if not same:
            standing.since = report.slot
            standing.unmet_slots = 0
        if report.state is Signal.NORMAL or not same:
            standing.step = 1
        elif standing.met:
            standing.step *= 2
        if standing.want:
            self._wish(worker, 0)  # whatever it wished before is stale
        standing.met = False
        standing.slot, standing.state = report.slot, report.state
        standing.room = report.by if report.state is Signal.NORMAL else 0
        (self._normal.add if report.state is Signal.NORMAL else self._normal.discard)(worker)

    def _learn(self, standing: _Standing, owned: int) -> None:
        """Remember how many virtual workers were too many, and forget it when they are not."""
        if abs(standing.slot - standing.too_many_slot) > _MEMORY:
            standing.too_many = _UNKNOWN
        measured_with = owned - standing.traded_in(standing.slot)
        if standing.state is Signal.BUSY:
            standing.too_many = min(standing.too_many, measured_with)
            standing.too_many_slot = standing.slot
        elif standing.state is Signal.IDLE and measured_with >= standing.too_many:
            standing.too_many = _UNKNOWN

    def _busy_wish(self, standing: _Standing, owned: int, by: int) -> int:
        standing.lonely_slots = standing.lonely_slots + 1 if owned == 1 else 0
        floor = 0 if standing.lonely_slots >= _LONELY_SLOTS else 1
        standing.step = min(standing.step, max(1, owned // 2))
        return min(by or standing.step, owned - floor)

    def _match(self, worker: int) -> list[Move]:
        """Trade with workers of the opposite wish, the longest waiting first."""
        mine = self._standings[worker]
        moves: list[Move] = []
        for other in self._waiting_for(worker):
            if mine.want == 0:
                break
            theirs = self._standings[other]
            count = min(abs(mine.want), abs(theirs.want))
            giver, taker = (worker, other) if mine.want < 0 else (other, worker)
            moves += self._trade(giver, taker, count, mine.slot)
            for who, standing in ((worker, mine), (other, theirs)):
                self._wish(who, standing.want + (-count if standing.want > 0 else count))
            theirs.met = theirs.want == 0
        return moves

    def _trade(self, giver: int, taker: int, count: int, slot: int) -> list[Move]:
        for worker, change in ((giver, -count), (taker, count)):
            standing = self._standings[worker]
            standing.traded = standing.traded_in(slot) + change
            standing.traded_slot = slot
        moves = self.assignment.give(giver, taker, count)
        self._standings[taker].retry = -1
        self._quarantined.discard(taker)
        if self.assignment.count(giver) == 0:
            self._quarantine(giver, slot)
        return moves

    def _waiting_for(self, worker: int) -> list[int]:
        mine = self._standings[worker]
        if mine.want == 0:
            return []
        waiting = [
            (standing.since, other)
            for other in (self._takers if mine.want < 0 else self._givers)
            if abs((standing := self._standings[other]).slot - mine.slot) <= _RECENT
        ]
        # Among those who wait equally long: the smallest taker, the largest giver. Each partner
        # takes one or gives one at least: no more are needed than are wished for.
        sign = -1 if mine.want > 0 else 1
        first = heapq.nsmallest(
            abs(mine.want),
            waiting,
            key=lambda pair: (pair[0], sign * self.assignment.count(pair[1]), pair[1]),
        )
        return [other for _, other in first]

    def _give_to_normal(self, worker: int, *, compared: bool) -> list[Move]:
        """Where nobody is idle, those who are neither may still have room.

        As much as they told, or half of the band in which they are.
        """
        mine = self._standings[worker]
        if mine.want == 0:
            mine.unmet_slots = 0
            return []
        mine.unmet_slots += 1
        if mine.unmet_slots < self._rules.patience:
            return []
        moves: list[Move] = []
        told = self._told_rooms(mine.slot) if compared else self._guessed_rooms(mine.slot)
        for other, room in told:
            if mine.want == 0:
                break
            count = min(-mine.want, room - self._standings[other].traded_in(mine.slot))
            if count > 0:
                moves += self._trade(worker, other, count, mine.slot)
                self._wish(worker, mine.want + count)
        return moves

    def _told_rooms(self, slot: int) -> list[tuple[int, int]]:
        """Normal workers that told of room, the most first."""
        normal = ((other, self._standings[other]) for other in self._normal)
        rooms = [(w, s.room) for w, s in normal if abs(s.slot - slot) <= _RECENT and s.room]
        return sorted(rooms, key=lambda pair: (-pair[1], pair[0]))

    def _guessed_rooms(self, slot: int) -> list[tuple[int, int]]:
        """Normal workers that were not busy with one more, those that have most first."""
        part = (self._rules.high - self._rules.low) / 2
        counts = [
            (other, count)
            for other in self._normal
            if abs((standing := self._standings[other]).slot - slot) <= _RECENT
            and (count := self.assignment.count(other)) + 1 < standing.too_many
        ]
        counts.sort(key=lambda pair: (-pair[1], pair[0]))
        return [(other, max(1, int(count * part + 1e-9))) for other, count in counts]

    def _quarantine(self, worker: int, slot: int) -> None:
        standing = self._standings[worker]
        self._quarantined.add(worker)
        standing.retry = slot + standing.quarantine
        standing.quarantine = min(2 * standing.quarantine, _QUARANTINE[1])
        standing.lonely_slots = 0

    def _retry_quarantined(self, giver: int) -> list[Move]:
        """A busy worker lends one virtual worker to each that waits for another try."""
        mine = self._standings[giver]
        moves: list[Move] = []
        for other in sorted(self._quarantined):
            due = self._standings[other].retry <= mine.slot and other != giver
            if due and mine.want < 0 and self.assignment.count(giver) > 1:
                moves += self._trade(giver, other, 1, mine.slot)
                self._wish(giver, mine.want + 1)
        return moves

    def save(self) -> dict[str, Any]:
        standings = [
            [worker, {**asdict(standing), "state": standing.state.value}]
            for worker, standing in self._standings.items()
        ]
        return {**super().save(), "standings": standings}

    def _restore(self, saved: Mapping[str, Any]) -> None:
        super()._restore(saved)
        fields: Iterable[tuple[int, dict[str, Any]]] = saved["standings"]
        self._standings = {
            worker: _Standing(**{**standing, "state": Signal(standing["state"])})
            for worker, standing in fields
        }
        self._sort_standings()
