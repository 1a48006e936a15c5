"""How a simulation runs: its time slots, its sources, its service times and its seed."""

from dataclasses import dataclass

from steelyard.simulator.service import Service
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class SimulationSettings:
    """Everything about a simulation but its stream, its cluster and its grouping.

    A slot must be a whole number of ticks, a period a whole number of slots.

    >>> SimulationSettings(slot=900, tick=300).ticks_per_slot
    3
    >>> SimulationSettings(slot=60, tick=7)
    Traceback (most recent call last):
    ...
    ValueError: slot must be a whole number of times tick, 7 s, got 60 s
    """

    sources: int = 1
    """Sources, each with its own state."""
    slot: float = 60.0
    """Seconds between two reports of a worker."""
    tick: float | None = 60.0
    """Seconds between two points of a series; None for one point per slot."""
    period: float | None = None
    """Seconds between two periodic aggregations; None for no aggregation."""
    quiet: float = 0.0
    """Seconds at the start without reports."""
    service: Service | None = None
    """The work of a message; None for one unit of work each."""
    overload: bool = False
    """Allow a stream that brings more work than the whole cluster can do."""
    seed: int = 0
    """Seed of the hash functions."""

    def __post_init__(self) -> None:
        require_whole("sources", self.sources, least=1)
        require_between("slot", self.slot, above=0)
        require_between("tick", self.tick_length, above=0)
        require_between("quiet", self.quiet, least=0)
        _whole_ratio("slot", self.slot, "tick", self.tick_length)
        if self.period is not None:
            _whole_ratio("period", self.period, "slot", self.slot)

    @property
    def tick_length(self) -> float:
        """Seconds between two points of a series."""
        return self.slot if self.tick is None else self.tick

    @property
    def ticks_per_slot(self) -> int:
        """Points of a series in each slot."""
        return _whole_ratio("slot", self.slot, "tick", self.tick_length)

    @property
    def slots_per_period(self) -> int:
        """Slots between two periodic aggregations; 0 without aggregation."""
        if self.period is None:
            return 0
        return _whole_ratio("period", self.period, "slot", self.slot)


def _whole_ratio(name: str, length: float, unit_name: str, unit: float) -> int:
    require_between(name, length, above=0)
    ratio = round(length / unit)
    if ratio < 1 or abs(ratio * unit - length) > 1e-9 * length:
        raise ValueError(
            f"{name} must be a whole number of times {unit_name}, {unit} s, got {length} s"
        )
    return ratio
