"""The history of a running stream, slot by slot, for users, dashboards and tests."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np

from steelyard.control.low_load import is_low_load
from steelyard.control.reports import LATENCY_BINS, latency_quantile

_ACCEPTED: dict[Any, Any] = {
    int: int,
    float: (int, float),
    float | None: (int, float, type(None)),
    str: str,
}
"""The types of JSON values that are accepted for each type of a field."""

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
