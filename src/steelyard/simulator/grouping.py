"""What a simulated source does with a message.

A scheme, or plans, on workers themselves; or consistent grouping: the same on virtual workers, and
a delegation that gives these to workers.
"""

from dataclasses import dataclass, field

from steelyard.delegation import Rules, SteadyRules
from steelyard.hashing import MOST_BINS
from steelyard.schemes import RandomChoices, Scheme
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class Plans:
    """All sources follow one plan, made at the end of every slot from the counts of their buckets.

    The settings are those of `steelyard.Planner`.
    """

    epsilon: float = 0.01
    buckets: int = 8192
    decay: float = 0.5

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)
        require_whole("buckets", self.buckets, least=1, most=MOST_BINS)
        require_between("decay", self.decay, least=0, most=1)


@dataclass(frozen=True)
class Direct:
    """A scheme that chooses workers themselves, as key grouping or shuffle grouping do."""

    scheme: Scheme | Plans


@dataclass(frozen=True)
class ConsistentGrouping:
    """A scheme that chooses virtual workers, and a delegation that gives these to workers."""

    scheme: Scheme | Plans = field(default_factory=RandomChoices)
    virtual_workers: int = 100
    """Per worker, at the start."""
    rules: Rules = field(default_factory=SteadyRules)
    compare_above: float | None = None
    """Where the load of the whole cluster is above this, workers are told what would be fair.

    They then compare themselves with that and not with the thresholds, which say nothing when
    everybody is busy. Somebody has to publish it: it needs what all workers measured.
    """

    def __post_init__(self) -> None:
        require_whole("virtual_workers", self.virtual_workers, least=1)
        if self.compare_above is not None:
            require_between("compare_above", self.compare_above, above=0)


Grouping = Direct | ConsistentGrouping
