"""The history of a running stream, slot by slot, for users, dashboards and tests."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, SupportsIndex, TypeVar, overload

import numpy as np

from steelyard.control.low_load import is_low_load
from steelyard.control.reports import LATENCY_BINS, latency_quantile
from steelyard.durations import shown_length
from steelyard.key_text import shown_key
from steelyard.showing import (
    OURS,
    PLAIN,
    Bars,
    card,
    counted,
    paragraph,
    picture,
    table_as_html,
    table_as_text,
)

_ACCEPTED: dict[Any, Any] = {
    int: int,
    float: (int, float),
    float | None: (int, float, type(None)),
    str: str,
}
"""The types of JSON values that are accepted for each type of a field."""

_LISTED = 10
"""The number of slots that the table of a history lists."""
_KEY_WIDTH = 24
"""Most columns of a terminal for a hot key in this table."""
_HEAD = ("slot", "messages", "largest", "busiest", "busy", "idle", "moves", "p99", "hottest key")
_TEXTS = (_HEAD.index("hottest key"),)

T = TypeVar("T")


@dataclass(frozen=True)
class WorkerSlot:
    """The measurements of a worker in one slot."""

    worker: int
    messages: int
    share: float
    """The worker's messages, divided by all messages of the slot."""
    utilization: float
    """The busy time of the worker, divided by the length of the slot."""
    state: str
    """idle, normal, busy or drained."""
    virtual_workers: int
    keys: int
    p50: float | None
    """The median latency: seconds from the arrival of a message until it is processed; None if
    unknown."""
    p99: float | None
    """The 99th percentile of the latency; None if unknown."""
    service: float | None = None
    """The mean seconds that the worker spent on a message."""
    backlog: float = 0.0
    """The messages that the worker had left when the mean worker had processed all of its own."""
    bytes: int = 0
    """The memory of the worker's partial states, in the micro-batch with the most."""


def quantile_of(slots: "Iterable[Slot]", quantile: float) -> float | None:
    """Return a quantile of the latency of all messages of some slots; None without messages."""
    bins = np.zeros(LATENCY_BINS, np.int64)
    for slot in slots:
        for index, messages in slot.latencies:
            bins[index] += messages
    return latency_quantile(bins, quantile)


@dataclass(frozen=True)
class HotKeyShare:
    """A frequent key, as text, and its share of the messages of a slot.

    Each source reports only the keys that are frequent in its own messages. The actual share of a
    key that is not frequent in all sources may be somewhat larger.
    """

    key: str
    share: float


@dataclass(frozen=True)
class Slot:
    """The measurements and the decision of one slot."""

    slot: int
    batch: int
    """The number of the last micro-batch in the slot."""
    time: float
    """The time at which the slot ended, in seconds since 1970."""
    seconds: float
    """The length of the slot."""
    messages: int
    workers: tuple[WorkerSlot, ...]
    moves: tuple[tuple[int, int, int], ...]
    """The moves at the end of the slot: virtual worker, giver, taker."""
    hot_keys: tuple[HotKeyShare, ...]
    version: int
    """The number of the version that was published at the end of the slot."""
    p50: float | None = None
    p99: float | None = None
    messages_so_far: int = 0
    """The messages of all slots since the control path was created."""
    moves_so_far: int = 0
    """The moves of all slots since the control path was created."""
    latencies: tuple[tuple[int, int], ...] = ()
    """Pairs of a latency bin and the messages in it; `quantile_of` combines several slots."""
    working: float = 0.0
    """The seconds from the start of the first worker to the end of the last one, by the clocks of
    their machines."""
    owners: tuple[int, ...] = ()
    """The worker of each virtual worker in the slot, before the moves of the slot.

    Recorded in the first slot of a run and at regular intervals. For the slots between, the owners
    follow from the moves.
    """

    @property
    def busiest(self) -> float:
        """The busy time of the busiest worker, in seconds."""
        return max((worker.utilization for worker in self.workers), default=0.0) * self.seconds

    @property
    def has_low_load(self) -> bool:
        """Whether the load is too low to judge workers: no virtual worker moves for it."""
        return is_low_load(self.busiest, self.seconds)

    @property
    def imbalance(self) -> float:
        """The busy time of the busiest worker, divided by the mean busy time, minus one."""
        used = [worker.utilization for worker in self.workers]
        mean = sum(used) / len(used) if used else 0.0
        return max(used) / mean - 1 if mean else 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the slot that `to_json` wrote; raise a ValueError for any other text."""
        try:
            read: dict[str, Any] = json.loads(text)
            read["workers"] = tuple(_checked(WorkerSlot, worker) for worker in read["workers"])
            read["hot_keys"] = tuple(_checked(HotKeyShare, key) for key in read["hot_keys"])
            read["latencies"] = tuple((b, n) for b, n in read.get("latencies", ()))
            read["moves"] = tuple((v, giver, taker) for v, giver, taker in read["moves"])
            read["owners"] = tuple(read.get("owners", ()))
            return _checked(cls, read)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not the JSON of a slot: {error!r}") from error


def _checked(kind: type[T], values: dict[str, Any]) -> T:
    """Return an object with these fields; raise a TypeError for a value of another type."""
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass
        accepted = _ACCEPTED.get(field.type, object)
        if field.name in values and not isinstance(values[field.name], accepted):
            raise TypeError(f"{field.name} is {values[field.name]!r}")
    return kind(**values)


def last_slot(lines: Sequence[str]) -> Slot | None:
    """Return the newest slot of some lines; skip lines that are not slots."""
    for line in reversed(lines):
        with suppress(ValueError):
            return Slot.from_json(line)
    return None


class History(list[Slot]):
    """Slots in the order of time, which show themselves as a table of the latest ones.

    The column `largest` has the messages of the worker with the most, and `busiest` the busy time
    of the worker with the longest, each divided by the mean of all workers.

    >>> worker = WorkerSlot(0, 10, 1.0, 0.5, "busy", 100, 2, None, None)
    >>> hot = HotKeyShare("news", 0.5)
    >>> History([Slot(3, 7, 1.7e9, 2.0, 10, (worker,), (), (hot,), 1)])
    1 slot of 1 worker
    slot  messages  largest  busiest  busy  idle  moves  p99  hottest key
       3        10     1.00     1.00     1     0      0    –  news 50 %
    """

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> Slot: ...
    @overload
    def __getitem__(self, place: slice, /) -> "History": ...
    def __getitem__(self, place: SupportsIndex | slice, /) -> "Slot | History":
        found = super().__getitem__(place)
        return History(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return "\n".join(
            [self._heading, *(table_as_text(_HEAD, self._rows, _TEXTS) if self else [])]
        )

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with a picture of all slots."""
        if not self:
            return card("History", paragraph(self._heading))
        busy, largest = [1 + slot.imbalance for slot in self], [_largest(slot) for slot in self]
        times = Bars(f"longest busy time: {busy[-1]:.2f} in the last slot", busy, PLAIN, True)
        loads = Bars(f"most messages: {largest[-1]:.2f}", largest, OURS)
        names = (f"slot {self[0].slot:,}", f"slot {self[-1].slot:,}")
        return card(
            f"History: {self._heading}",
            picture([times, loads], names, 1.0, "mean of the workers"),
            table_as_html(_HEAD, self._rows, _TEXTS),
        )

    @property
    def _heading(self) -> str:
        if not self:
            return "no slots yet"
        workers = counted(len(self[-1].workers), "worker")
        listed = f"; the last {_LISTED}" if len(self) > _LISTED else ""
        return f"{counted(len(self), 'slot')} of {workers}{listed}"

    @property
    def _rows(self) -> list[tuple[str, ...]]:
        return [_row(slot) for slot in self[-_LISTED:]]


def _row(slot: Slot) -> tuple[str, ...]:
    """Return a slot as texts, in the order of `_HEAD`."""
    states = [worker.state for worker in slot.workers]
    return (
        f"{slot.slot:,}",
        f"{slot.messages:,}",
        f"{_largest(slot):.2f}",
        f"{1 + slot.imbalance:.2f}",
        f"{states.count('busy'):,}",
        f"{states.count('idle'):,}",
        f"{len(slot.moves):,}",
        shown_length(slot.p99),
        "".join(
            f"{shown_key((hot.key,), _KEY_WIDTH)} {100 * hot.share:.0f} %"
            for hot in slot.hot_keys[:1]
        ),
    )


def _largest(slot: Slot) -> float:
    """Return the messages of the worker with the most, divided by the mean."""
    shares = [worker.share for worker in slot.workers]
    return max(shares, default=0.0) * len(shares)
