"""The record that a source of the steady delegation keeps of a worker."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from steelyard.delegation.signals import Signal

FIRST_PAUSE = 16
"""The slots until a worker without virtual workers gets one again, the first time."""

UNKNOWN = 2**31
"""A value above every number of virtual workers: it is unknown how many make a worker busy."""


@dataclass
class Standing:
    """The record of a worker."""

    slot: int = -10
    """The slot of the worker's last report."""
    state: Signal = Signal.NORMAL
    """The state of the worker's last report."""
    since: int = 0
    """The slot in which the worker entered this state."""
    step: int = 1
    """The number of virtual workers that the next request is for, if the report names none."""
    request: int = 0
    """The virtual workers that the worker still asks for or, if negative, offers."""
    met: bool = False
    """Whether the last request was met in full."""
    room: int = 0
    """The virtual workers that the worker, though normal, reported room for."""
    unmet_slots: int = 0
    """The number of consecutive busy reports after which no other worker could take."""
    too_many: int = UNKNOWN
    """The fewest virtual workers with which the worker was busy recently."""
    too_many_slot: int = -10
    """The slot of the last busy report."""
    single_busy_slots: int = 0
    """The number of consecutive busy reports with a single virtual worker."""
    traded: int = 0
    """The virtual workers received minus those given at the end of `traded_slot`."""
    traded_slot: int = -10
    """The slot of the worker's last moves."""
    retry: int = -1
    """The slot from which the worker, which has no virtual worker, may get one; -1: not paused."""
    pause: int = FIRST_PAUSE
    """The length in slots of the worker's next pause."""

    def traded_in(self, slot: int) -> int:
        """Return the virtual workers received minus those given at the end of a slot."""
        return self.traded if self.traded_slot == slot else 0

    def save(self) -> dict[str, Any]:
        """Return the record as a dictionary for JSON."""
        return {**asdict(self), "state": self.state.value}

    @classmethod
    def resume(cls, saved: Mapping[str, Any]) -> Self:
        """Return the saved record."""
        return cls(**{**saved, "state": Signal(saved["state"])})
