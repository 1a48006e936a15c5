"""The values that pass between workers and sources."""

from dataclasses import dataclass
from enum import Enum
from math import inf

from steelyard.validation import require_between


class Signal(Enum):
    """The state that a worker reports to the sources with an acknowledgment."""

    IDLE = "idle"
    NORMAL = "normal"
    BUSY = "busy"


@dataclass(frozen=True)
class Report:
    """The content of an acknowledgment: the slot that the worker finished, and its state."""

    slot: int
    """The number of the slot that the worker finished."""
    state: Signal
    """The state of the worker at the end of the slot."""
    by: int = 0
    """The virtual workers that a busy worker has too many, an idle worker has too few, or a normal
    worker has room for; 0 if unknown."""


@dataclass(frozen=True)
class Measurement:
    """The measurements of a worker in one slot. They never leave the worker.

    Args:
        arrivals: The number of messages that arrived.
        backlog: The number of messages that wait at the end of the slot.
        service_time: The mean seconds that one message takes.
        busy: The seconds spent on messages.
        memory: The keys, or bytes, that the worker holds.
    """

    arrivals: float = 0.0
    backlog: float = 0.0
    service_time: float = 0.0
    busy: float = 0.0
    memory: float = 0.0

    def __post_init__(self) -> None:
        for name in ("arrivals", "backlog", "service_time", "busy", "memory"):
            value = getattr(self, name)
            # Simulations create millions of measurements: this check is faster than the full one.
            if not (type(value) in (int, float) and 0 <= value < inf):
                require_between(name, value, least=0)
