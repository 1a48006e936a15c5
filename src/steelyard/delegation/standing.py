"""What a source of the steady delegation remembers of a worker."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from steelyard.delegation.signals import Signal

FIRST_PAUSE = 16
"""Slots until a worker without virtual workers is tried again for the first time."""

UNKNOWN = 2**31
"""No number of virtual workers with which a worker was busy is remembered."""

_SAVED = {"request": "want", "single_busy_slots": "lonely_slots", "pause": "quarantine"}
"""Fields that are saved under another name, which files already have."""

_RESUMED = {saved: name for name, saved in _SAVED.items()}


@dataclass
class Standing:
    """What a source remembers of a worker."""

    slot: int = -10
    """Of the last report."""
    state: Signal = Signal.NORMAL
    since: int = 0
    """The slot in which it came into this state."""
    step: int = 1
    request: int = 0
    """Virtual workers that it still asks for, or, if negative, offers."""
    met: bool = False
    """Whether all of its last request was met."""
    room: int = 0
    """Virtual workers that it can take, as it reported, though it is normal."""
    unmet_slots: int = 0
    """Reports in a row as busy with nobody to give to."""
    too_many: int = UNKNOWN
    """The fewest virtual workers with which it was busy lately."""
    too_many_slot: int = -10
    single_busy_slots: int = 0
    """Reports in a row as busy with a single virtual worker."""
    traded: int = 0
    """Virtual workers that it got, less those that it gave, at the end of `traded_slot`."""
    traded_slot: int = -10
    retry: int = -1
    """The slot from which it may be tried again; -1: it is not left alone."""
    pause: int = FIRST_PAUSE
    """Slots for which it is left alone the next time that it has no virtual worker."""

    def traded_in(self, slot: int) -> int:
        """What it got, less what it gave, at the end of that slot."""
        return self.traded if self.traded_slot == slot else 0

    def save(self) -> dict[str, Any]:
        """Return the fields under their saved names, ready for JSON."""
        fields = {_SAVED.get(name, name): value for name, value in asdict(self).items()}
        return {**fields, "state": self.state.value}

    @classmethod
    def resume(cls, saved: Mapping[str, Any]) -> Self:
        """Return the standing that was saved."""
        fields = {_RESUMED.get(name, name): value for name, value in saved.items()}
        return cls(**{**fields, "state": Signal(saved["state"])})
