"""What a running stream did, slot by slot: for people, dashboards and tests."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np

from steelyard.control.reports import LATENCY_BINS, latency_quantile

_ACCEPTED: dict[Any, Any] = {
    int: int,
    float: (int, float),
    float | None: (int, float, type(None)),
    str: str,
}
"""By the type of a field: what JSON may hold for it."""

T = TypeVar("T")


@dataclass(frozen=True)
class WorkerSlot:
    """A worker in one slot."""

    worker: int
    messages: int
    share: float
    """Of all messages of the slot."""
    utilization: float
    """Its busy time against the slot's length."""
    state: str
    """idle, normal, busy or drained."""
    virtual_workers: int
    keys: int
    p50: float | None
    """Seconds from a message's arrival until it was worked off; None where that is not known."""
    p99: float | None
    service: float | None = None
    """Seconds that a message took it, on average."""
    backlog: float = 0.0
    """Messages that still waited for it when the mean worker had done all of its own."""
    bytes: int = 0
    """The memory of its partial results, in the micro-batch with the most."""


def quantile_of(slots: "Iterable[Slot]", quantile: float) -> float | None:
    """The latency below which such a part of the messages of some slots are; None if none are."""
    bins = np.zeros(LATENCY_BINS, np.int64)
    for slot in slots:
        for place, messages in slot.latencies:
            bins[place] += messages
    return latency_quantile(bins, quantile)


@dataclass(frozen=True)
class HotKeyShare:
    """A key that comes often, as text, and its share of the slot's messages.

    Counted where messages are sent, and told by each sender of the keys that are frequent there: a
    key that is not frequent at all senders may have a somewhat larger share.
    """

    key: str
    share: float


@dataclass(frozen=True)
class Slot:
    """All that is known of one slot."""

    slot: int
    batch: int
    """The last micro-batch in it."""
    time: float
    """Seconds since 1970, when it ended."""
    seconds: float
    messages: int
    workers: tuple[WorkerSlot, ...]
    moves: tuple[tuple[int, int, int], ...]
    """Virtual worker, giver, taker."""
    hot_keys: tuple[HotKeyShare, ...]
    version: int
    """The version that was published at its end."""
    p50: float | None = None
    p99: float | None = None
    messages_so_far: int = 0
    """Of all slots since the control path was new."""
    moves_so_far: int = 0
    latencies: tuple[tuple[int, int], ...] = ()
    """Bins of latency and the messages in them: `quantile_of` tells of several slots."""
    working: float = 0.0
    """Seconds from the first worker's beginning to the last one's end, by their clocks."""
    owners: tuple[int, ...] = ()
    """The worker of each virtual worker in the slot, before its moves.

    Told when a run begins and now and then; for the slots between, the moves tell.
    """

    @property
    def busiest(self) -> float:
        """Seconds that the busiest worker was busy."""
        return max(worker.utilization for worker in self.workers) * self.seconds

    @property
    def imbalance(self) -> float:
        """The busiest worker's busy time against the mean, less one."""
        used = [worker.utilization for worker in self.workers]
        mean = sum(used) / len(used) if used else 0.0
        return max(used) / mean - 1 if mean else 0.0

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The slot that `to_json` wrote; a ValueError for any other text."""
        try:
            found: dict[str, Any] = json.loads(text)
            found["workers"] = tuple(_made(WorkerSlot, worker) for worker in found["workers"])
            found["hot_keys"] = tuple(_made(HotKeyShare, key) for key in found["hot_keys"])
            found["latencies"] = tuple((b, n) for b, n in found.get("latencies", ()))
            found["moves"] = tuple((v, giver, taker) for v, giver, taker in found["moves"])
            found["owners"] = tuple(found.get("owners", ()))
            return _made(cls, found)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is not the JSON of a slot: {error!r}") from error


def _made(kind: type[T], found: dict[str, Any]) -> T:
    """An object of these fields, whose numbers and texts have the declared types."""
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass
        accepted = _ACCEPTED.get(field.type, object)
        if field.name in found and not isinstance(found[field.name], accepted):
            raise TypeError(f"{field.name} is {found[field.name]!r}")
    return kind(**found)


def last_slot(lines: Sequence[str]) -> Slot | None:
    """The newest slot of some lines; lines that are not slots are skipped."""
    for line in reversed(lines):
        with suppress(ValueError):
            return Slot.from_json(line)
    return None
