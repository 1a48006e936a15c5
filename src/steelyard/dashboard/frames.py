"""Compute the content of the page: slots enter; bars, blocks, series and sentences leave.

Nothing here depends on how the page is drawn.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.control.history import Slot
from steelyard.control.low_load import LOW_LOAD
from steelyard.dashboard import wording
from steelyard.dashboard.owners import Blocks, Ownership

Floats = NDArray[np.float64]

_STRAGGLER = 0.1
"""Threshold above the fair load at which a worker without a state is reported as busy."""

_MORE = 0.02
"""Threshold above the fair load at which a busy worker is reported: the band of delegation."""

_SAME_SCALE = 20
"""Number of earlier slots that determine the scale of the bars."""

_MOST_LINES = 40
"""Most lines of the log."""


@dataclass(frozen=True)
class Bar:
    """The bar of a worker in a slot."""

    worker: int
    state: str
    messages: int
    capacity: float | None
    """Messages that the worker could have processed while workers were busy; None: unknown."""
    share: float
    """Share of the slot's messages."""
    utilization: float
    """Fraction of the slot in which the worker was busy."""
    virtual_workers: int
    backlog: float
    keys: int
    p99: float | None


@dataclass(frozen=True)
class SlotSummary:
    """The main numbers of a slot."""

    slot: int
    time: float
    rate: float
    """Messages per second."""
    utilization: float | None
    """Throughput as a fraction of the total capacity; None if the capacity is unknown."""
    imbalance: float
    p99: float | None
    backlog: float
    """Messages that wait, as a fraction of the slot's messages."""
    moves_so_far: int


@dataclass(frozen=True)
class LogLine:
    """The moves at the end of a slot."""

    slot: int
    time: float
    text: str


@dataclass(frozen=True, eq=False)
class ChartSeries:
    """Numbers by slot; unknown ones are NaN."""

    slot: NDArray[np.int64]
    rate: Floats
    backlog: Floats
    """Messages that wait, as a fraction of the slot's messages."""
    p50: Floats
    p99: Floats
    imbalance: Floats
    moves: Floats


@dataclass(frozen=True, eq=False)
class Frame:
    """The content of the page for one slot."""

    slot: Slot
    summary: SlotSummary
    bars: tuple[Bar, ...]
    blocks: Blocks
    is_bad: bool
    """Whether a worker is overloaded."""
    finding: str
    """The overloaded workers, in a sentence."""
    action: str
    """The moves at the end of the slot, in a sentence."""


class Timeline:
    """The slots of a run so far."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)

    def __len__(self) -> int:
        return len(self.slots)

    @cached_property
    def _ownership(self) -> Ownership:
        return Ownership(self.slots)

    @cached_property
    def capacities(self) -> list[dict[int, float]]:
        """For each slot: the last measured capacity of each worker, in messages per second."""
        known: dict[int, float] = {}
        found = []
        for slot in self.slots:
            measured = {w.worker: 1 / w.service for w in slot.workers if w.service}
            there = {w.worker for w in slot.workers}
            known = {w: c for w, c in {**known, **measured}.items() if w in there}
            found.append(known)
        return found

    @cached_property
    def has_states(self) -> bool:
        """Whether workers report states; with key grouping and with pull they do not."""
        return any(
            slot.owners or slot.moves or any(w.state != "normal" for w in slot.workers)
            for slot in self.slots
        )

    def widest(self, place: int) -> float:
        """Return the largest number of messages that the bars of recent slots have to show.

        It is at most twice the number of the slot itself, so that its bars stay readable after a
        much longer slot.
        """
        recent = range(max(0, place - _SAME_SCALE), place + 1)
        found = [self._most_messages(other) for other in recent]
        return min(max(found), 2 * found[-1]) if found else 0.0

    def _most_messages(self, place: int) -> float:
        slot, capacities = self.slots[place], self.capacities[place]
        capacity = max(capacities.values(), default=0.0) * _processing_time(slot)
        return max([capacity, *(worker.messages for worker in slot.workers)])

    @cached_property
    def most_owned(self) -> int:
        """The largest number of virtual workers that a worker had in any slot."""
        return max((w.virtual_workers for s in self.slots for w in s.workers), default=0)

    def frame(self, place: int) -> Frame:
        """Compute the content of the page for the slot at this index."""
        slot, capacities = self.slots[place], self.capacities[place]
        length = _processing_time(slot)
        bars = tuple(
            Bar(
                worker=w.worker,
                state=w.state,
                messages=w.messages,
                capacity=length * capacities[w.worker] if w.worker in capacities else None,
                share=w.share,
                utilization=w.utilization,
                virtual_workers=w.virtual_workers,
                backlog=w.backlog,
                keys=w.keys,
                p99=w.p99,
            )
            for w in slot.workers
        )
        if not self.has_states:
            bars = with_inferred_states(bars)
        slow = overloaded(bars, slot.imbalance)
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
        """The numbers of all slots, for charts."""
        slots = self.slots
        return ChartSeries(
            slot=np.array([s.slot for s in slots], np.int64),
            rate=np.array([_per_second(s.messages, s.seconds) for s in slots], np.float64),
            backlog=np.array([_relative_backlog(s) for s in slots], np.float64),
            p50=np.array([np.nan if s.p50 is None else s.p50 for s in slots], np.float64),
            p99=np.array([np.nan if s.p99 is None else s.p99 for s in slots], np.float64),
            imbalance=np.array([s.imbalance for s in slots], np.float64),
            moves=np.array([len(s.moves) for s in slots], np.float64),
        )

    def log(self, place: int) -> list[LogLine]:
        """Return the moves up to the slot at this index, the latest first."""
        lines = []
        for slot in reversed(self.slots[: place + 1]):
            if slot.moves:
                lines.append(LogLine(slot.slot, slot.time, moves_in_words(slot)))
                if len(lines) == _MOST_LINES:
                    break
        return lines


def with_inferred_states(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Mark workers as busy that need much longer than with loads proportional to capacity."""
    if not _has_work(bars):
        return tuple(bars)
    slow = {bar.worker for bar in bars if bar.capacity and _has_too_much(bar, bars, _STRAGGLER)}
    return tuple(replace(bar, state="busy") if bar.worker in slow else bar for bar in bars)


def overloaded(bars: Sequence[Bar], imbalance: float) -> list[Bar]:
    """Return the busy workers with more than their share of the messages; else a straggler.

    A share is fair if it is that of the worker's capacity. At low load there are none.
    """
    if not _has_work(bars):
        return []
    slow = [bar for bar in bars if bar.state == "busy" and _has_too_much(bar, bars, _MORE)]
    if not slow and imbalance > _STRAGGLER:
        busiest = max(bars, key=lambda bar: bar.utilization)
        slow = [busiest] if _has_too_much(busiest, bars, _STRAGGLER) else []
    return slow


def _has_too_much(bar: Bar, bars: Sequence[Bar], tolerance: float) -> bool:
    """Return whether a worker has more than its fair share, or messages and no known capacity."""
    if not bar.capacity:
        return bar.messages > 0
    working = [other for other in bars if other.state != "drained"]
    fair = sum(other.messages for other in bars) / sum(other.capacity or 0.0 for other in working)
    return bar.messages / bar.capacity > (1 + tolerance) * fair


def _has_work(bars: Sequence[Bar]) -> bool:
    return max((bar.utilization for bar in bars), default=0.0) >= LOW_LOAD


def finding(bars: Sequence[Bar], slow: Sequence[Bar]) -> str:
    """Describe the overloaded workers in a sentence."""
    if not any(bar.messages for bar in bars):
        return "No messages arrived in this slot."
    working = [bar for bar in bars if bar.state != "drained"]
    drained = [bar.worker for bar in bars if bar.state == "drained"]
    away = f" {wording.workers(drained)} {_are(drained)} drained." if drained else ""
    if not slow and not _has_work(bars):
        busiest = wording.percent(max(bar.utilization for bar in bars))
        return f"Low load: the highest utilization of a worker is {busiest}.{away}"
    if not slow:
        return f"No worker gets more than its share of the messages.{away}"
    capacity = sum(bar.capacity or 0.0 for bar in working)
    names = wording.workers(bar.worker for bar in slow)
    gets = wording.percent(sum(bar.share for bar in slow))
    if not capacity or any(bar.capacity is None for bar in slow):
        return f"{names} {_are(slow)} busy, with {gets} of the messages.{away}"
    fair = wording.percent(sum(bar.capacity or 0.0 for bar in slow) / capacity)
    verb = "get" if len(slow) > 1 else "gets"
    they = "they have" if len(slow) > 1 else "it has"
    return f"{names} {verb} {gets} of the messages; {they} {fair} of the capacity.{away}"


def action(slot: Slot) -> str:
    """Describe the moves at the end of the slot in a sentence."""
    return f"{moves_in_words(slot)}." if slot.moves else "No virtual workers move."


def moves_in_words(slot: Slot) -> str:
    """Describe which workers give virtual workers, and which take them."""
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
        utilization=rate / capacity if capacity else None,
        imbalance=slot.imbalance,
        p99=slot.p99,
        backlog=_relative_backlog(slot),
        moves_so_far=slot.moves_so_far,
    )


def _relative_backlog(slot: Slot) -> float:
    """Return the messages that wait, as a fraction of the messages that the slot processed."""
    return sum(worker.backlog for worker in slot.workers) / max(1, slot.messages)


def _processing_time(slot: Slot) -> float:
    """Return the seconds in which workers were busy, without Spark's own time.

    The clocks of workers may be wrong, so the result is at most the length of the slot.
    """
    return slot.working if 0 < slot.working <= slot.seconds else slot.seconds


def _per_second(messages: float, length: float) -> float:
    return messages / length if length > 0 else 0.0
