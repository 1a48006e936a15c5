"""What the page shows of a run: slots enter; bars, blocks, series and sentences leave.

Nothing here knows how it is drawn.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import Slot
from steelyard.dashboard import wording
from steelyard.dashboard.owners import Blocks, Ownership

Floats = NDArray[np.float64]

_UNFAIR = 0.1
"""Who is busy for so much longer than the mean is told of."""

_LITTLE = 0.05
"""Where nobody is busy for more of the time than this, it is no matter who is busiest."""

_LATELY = 20
"""Slots before one that is shown whose bars are drawn to the same scale."""

_LOGGED = 40
"""Lines of the log at most."""


@dataclass(frozen=True)
class Bar:
    """A worker in a slot."""

    worker: int
    state: str
    messages: int
    capacity: float | None
    """Messages that it could have done while workers were at work, by its service time."""
    share: float
    used: float
    """Its busy time against the slot's length."""
    virtual_workers: int
    backlog: float
    keys: int
    p99: float | None


@dataclass(frozen=True)
class SlotSummary:
    """A slot in a few numbers."""

    slot: int
    time: float
    rate: float
    """Messages a second."""
    used: float | None
    """Of what all workers could have done in the slot; None where that is not known."""
    imbalance: float
    p99: float | None
    backlog: float
    moves_so_far: int


@dataclass(frozen=True)
class LogLine:
    """What moved at the end of a slot."""

    slot: int
    time: float
    text: str


@dataclass(frozen=True, eq=False)
class ChartSeries:
    """Numbers over the slots; NaN where something is not known."""

    slot: NDArray[np.int64]
    rate: Floats
    backlog: Floats
    p50: Floats
    p99: Floats
    imbalance: Floats
    moves: Floats


@dataclass(frozen=True, eq=False)
class Frame:
    """All that is shown of one slot."""

    slot: Slot
    summary: SlotSummary
    bars: tuple[Bar, ...]
    blocks: Blocks
    is_bad: bool
    """Whether somebody has more than it can do."""
    finding: str
    """Who is slow."""
    action: str
    """What happens about it."""


class Timeline:
    """A run so far, or all of it."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)

    def __len__(self) -> int:
        return len(self.slots)

    @cached_property
    def _ownership(self) -> Ownership:
        return Ownership(self.slots)

    @cached_property
    def capacities(self) -> list[dict[int, float]]:
        """By slot: messages a second that each worker could do, as was last measured."""
        known: dict[int, float] = {}
        found = []
        for slot in self.slots:
            measured = {w.worker: 1 / w.service for w in slot.workers if w.service}
            there = {w.worker for w in slot.workers}
            known = {w: c for w, c in {**known, **measured}.items() if w in there}
            found.append(known)
        return found

    @cached_property
    def tells_states(self) -> bool:
        """Whether workers report states; with key grouping, and where tasks are pulled, none do."""
        return any(
            slot.owners or slot.moves or any(w.state != "normal" for w in slot.workers)
            for slot in self.slots
        )

    def widest(self, place: int) -> float:
        """The most messages that a worker lately got, or could have done, in a slot.

        A slot that was far longer than the one that is shown would leave that too little room.
        """
        lately = range(max(0, place - _LATELY), place + 1)
        found = [self._most_messages(other) for other in lately]
        return min(max(found), 2 * found[-1]) if found else 0.0

    def _most_messages(self, place: int) -> float:
        slot, capacities = self.slots[place], self.capacities[place]
        could = max(capacities.values(), default=0.0) * _at_work(slot)
        return max([could, *(worker.messages for worker in slot.workers)])

    @cached_property
    def most_owned(self) -> int:
        """The most virtual workers that any worker had."""
        return max((w.virtual_workers for s in self.slots for w in s.workers), default=0)

    def frame(self, place: int) -> Frame:
        """What to show of the slot at this place."""
        slot, capacities = self.slots[place], self.capacities[place]
        length = _at_work(slot)
        bars = tuple(
            Bar(
                worker=w.worker,
                state=w.state,
                messages=w.messages,
                capacity=length * capacities[w.worker] if w.worker in capacities else None,
                share=w.share,
                used=w.utilization,
                virtual_workers=w.virtual_workers,
                backlog=w.backlog,
                keys=w.keys,
                p99=w.p99,
            )
            for w in slot.workers
        )
        if not self.tells_states:
            bars = judged(bars)
        slow = slow_ones(bars, slot.imbalance)
        return Frame(
            slot=slot,
            summary=_summary(slot, sum(capacities.values())),
            bars=bars,
            blocks=self._ownership.at(place),
            is_bad=bool(slow),
            finding=finding(bars, slow),
            action=action(slot),
        )

    @cached_property
    def series(self) -> ChartSeries:
        """The numbers of all slots."""
        slots = self.slots
        return ChartSeries(
            slot=np.array([s.slot for s in slots], np.int64),
            rate=np.array([_per_second(s.messages, s.seconds) for s in slots], np.float64),
            backlog=np.array([sum(w.backlog for w in s.workers) for s in slots], np.float64),
            p50=np.array([np.nan if s.p50 is None else s.p50 for s in slots], np.float64),
            p99=np.array([np.nan if s.p99 is None else s.p99 for s in slots], np.float64),
            imbalance=np.array([s.imbalance for s in slots], np.float64),
            moves=np.array([len(s.moves) for s in slots], np.float64),
        )

    def log(self, place: int) -> list[LogLine]:
        """What moved up to the slot at this place, the latest first."""
        lines = []
        for slot in reversed(self.slots[: place + 1]):
            if slot.moves:
                lines.append(LogLine(slot.slot, slot.time, moves_in_words(slot)))
                if len(lines) == _LOGGED:
                    break
        return lines


def judged(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """The bars of workers that report no state: busy is who takes much longer than is fair."""
    capacity = sum(bar.capacity or 0.0 for bar in bars)
    fair = sum(bar.messages for bar in bars) / capacity if capacity else 0.0
    if not _has_work(bars):
        return tuple(bars)
    return tuple(
        replace(bar, state="busy")
        if bar.capacity and bar.messages / bar.capacity > (1 + _UNFAIR) * fair
        else bar
        for bar in bars
    )


def slow_ones(bars: Sequence[Bar], imbalance: float) -> list[Bar]:
    """Who says that it is busy; if nobody does, the busiest, where it keeps the others waiting."""
    slow = [bar for bar in bars if bar.state == "busy"]
    if not slow and imbalance > _UNFAIR and _has_work(bars):
        slow = [max(bars, key=lambda bar: bar.used)]
    return slow


def _has_work(bars: Sequence[Bar]) -> bool:
    return max((bar.used for bar in bars), default=0.0) >= _LITTLE


def finding(bars: Sequence[Bar], slow: Sequence[Bar]) -> str:
    """Who gets more than it can do, in a sentence."""
    if not any(bar.messages for bar in bars):
        return "No messages came in this slot."
    working = [bar for bar in bars if bar.state != "drained"]
    drained = [bar.worker for bar in bars if bar.state == "drained"]
    away = f" {wording.workers(drained)} {_are(drained)} drained." if drained else ""
    if not slow and not _has_work(bars):
        busiest = wording.percent(max(bar.used for bar in bars))
        return f"Little to do: the busiest worker worked {busiest} of the time.{away}"
    if not slow:
        return f"No worker is overloaded.{away}"
    capacity = sum(bar.capacity or 0.0 for bar in working)
    told = wording.workers(bar.worker for bar in slow)
    gets = wording.percent(sum(bar.share for bar in slow))
    if not capacity or any(bar.capacity is None for bar in slow):
        return f"{told} {_are(slow)} busy: {gets} of the messages.{away}"
    fair = wording.percent(sum(bar.capacity or 0.0 for bar in slow) / capacity)
    verb = "get" if len(slow) > 1 else "gets"
    they = "they have" if len(slow) > 1 else "it has"
    return f"{told} {verb} {gets} of the messages; {they} {fair} of the capacity.{away}"


def action(slot: Slot) -> str:
    """What happens at the end of the slot, in a sentence."""
    return f"{moves_in_words(slot)}." if slot.moves else "Nothing moves."


def moves_in_words(slot: Slot) -> str:
    """Who gives how many virtual workers, and who takes them."""
    givers = Counter(giver for _, giver, _ in slot.moves)
    takers = sorted({taker for _, _, taker in slot.moves})
    number = wording.many(len(slot.moves), "virtual worker")
    verb = "moves" if len(slot.moves) == 1 else "move"
    most = [f"{giver} ({count})" for giver, count in sorted(givers.items())]
    if len(most) == 1:
        most = [str(giver) for giver in givers]
    elif len(most) > 4:
        most = [*most[:3], f"{len(most) - 3} more"]
    return f"{number} {verb} from {wording.joined(most)} to {wording.listed(takers)}"


def _are(things: Sequence[object]) -> str:
    return "are" if len(things) > 1 else "is"


def _summary(slot: Slot, capacity: float) -> SlotSummary:
    rate = _per_second(slot.messages, slot.seconds)
    return SlotSummary(
        slot=slot.slot,
        time=slot.time,
        rate=rate,
        used=rate / capacity if capacity else None,
        imbalance=slot.imbalance,
        p99=slot.p99,
        backlog=sum(worker.backlog for worker in slot.workers),
        moves_so_far=slot.moves_so_far,
    )


def _at_work(slot: Slot) -> float:
    """Seconds in which workers were at work: Spark's own time between micro-batches is no work.

    By their clocks, which may be wrong: a slot has no more of them than it is long.
    """
    return slot.working if 0 < slot.working <= slot.seconds else slot.seconds


def _per_second(messages: float, length: float) -> float:
    return messages / length if length > 0 else 0.0
