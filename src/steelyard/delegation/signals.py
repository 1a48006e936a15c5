"""What passes between workers and sources."""

from dataclasses import dataclass
from enum import Enum
from math import inf

from steelyard.validation import require_between


class Signal(Enum):
    """What a worker tells the sources with an acknowledgement."""

    IDLE = "idle"
    NORMAL = "normal"
    BUSY = "busy"


@dataclass(frozen=True)
class Report:
    """What every acknowledgement carries: the slot that the worker finished, and its state."""

    slot: int
    state: Signal
    by: int = 0
    """Virtual workers that it has too many, or too few, if it can tell; 0 if not.

    Of a normal worker: for how many it has room.
    """


@dataclass(frozen=True)
class Measurement:
    """What a worker saw of itself in one slot. It never leaves the worker."""

    arrivals: float = 0.0
    """Messages that arrived."""
    backlog: float = 0.0
    """Messages that wait at the end of the slot."""
    service_time: float = 0.0
    """Mean seconds that one message takes."""
    busy: float = 0.0
    """Seconds spent on messages."""
    memory: float = 0.0
    """Keys, or bytes, held."""

    def __post_init__(self) -> None:
        for name in ("arrivals", "backlog", "service_time", "busy", "memory"):
            value = getattr(self, name)
            # Simulations make millions of these: most pass at a glance.
            if not (type(value) in (int, float) and 0 <= value < inf):
                require_between(name, value, least=0)
