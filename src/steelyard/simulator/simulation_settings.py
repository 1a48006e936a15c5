"""The settings of a simulation: time slots, sources, service times and seed."""

from dataclasses import dataclass

from steelyard.simulator.service import Service
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class SimulationSettings:
    """All settings of a simulation except its stream, its cluster and its grouping.

    A slot must be a whole number of ticks, and a period a whole number of slots.

    >>> SimulationSettings(slot=900, tick=300).ticks_per_slot
    3
    >>> SimulationSettings(slot=60, tick=7)
    Traceback (most recent call last):
    ...
    ValueError: slot must be a multiple of tick, 7 s, got 60 s
    """

    sources: int = 1
    """The number of sources; each has its own state."""
    slot: float = 60.0
    """The seconds between two reports of a worker."""
    tick: float | None = 60.0
    """The seconds between two points of a series; None for one point per slot."""
    period: float | None = None
    """The seconds between two periodic aggregations; None for no aggregation."""
    quiet: float = 0.0
    """The seconds without reports at the start."""
    service: Service | None = None
    """The work of a message; None for one unit of work per message."""
    overload: bool = False
    """Whether to accept a stream that needs more than the capacity of the cluster."""
    seed: int = 0
    """The seed of the hash functions."""

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
        """The seconds between two points of a series."""
        return self.slot if self.tick is None else self.tick

    @property
    def ticks_per_slot(self) -> int:
        """The number of points of a series in each slot."""
        return _whole_ratio("slot", self.slot, "tick", self.tick_length)

    @property
    def slots_per_period(self) -> int:
        """The number of slots in a period; 0 without periodic aggregation."""
        if self.period is None:
            return 0
        return _whole_ratio("period", self.period, "slot", self.slot)


def _whole_ratio(name: str, length: float, unit_name: str, unit: float) -> int:
    require_between(name, length, above=0)
    ratio = round(length / unit)
    if ratio < 1 or abs(ratio * unit - length) > 1e-9 * length:
        raise ValueError(f"{name} must be a multiple of {unit_name}, {unit} s, got {length} s")
    return ratio
