"""What a simulated source does with a message: a scheme on workers, or consistent grouping."""

from dataclasses import dataclass, field

from steelyard.delegation import Rules, SteadyRules
from steelyard.schemes import RandomChoices, Scheme
from steelyard.validation import require_whole


@dataclass(frozen=True)
class Direct:
    """A scheme that chooses workers themselves, as key grouping or shuffle grouping do."""

    scheme: Scheme


@dataclass(frozen=True)
class ConsistentGrouping:
    """A scheme that chooses virtual workers, and a delegation that gives these to workers."""

    scheme: Scheme = field(default_factory=RandomChoices)
    virtual_workers: int = 100
    """Per worker, at the start."""
    rules: Rules = field(default_factory=SteadyRules)

    def __post_init__(self) -> None:
        require_whole("virtual_workers", self.virtual_workers, least=1)


Grouping = Direct | ConsistentGrouping
