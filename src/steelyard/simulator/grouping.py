"""The groupings of a simulation: how a source chooses the worker of a message.

A scheme or a plan chooses workers directly. In consistent grouping it chooses virtual workers, and
delegation assigns virtual workers to workers.
"""

from dataclasses import dataclass, field

from steelyard.delegation import Rules, SteadyRules
from steelyard.hashing import MOST_BINS
from steelyard.plans import Balance
from steelyard.schemes import RandomChoices, Scheme
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class Plans:
    """All sources follow one plan, which is updated at the end of every slot.

    The plan is made from the counts of messages by bucket. The settings are those of
    `steelyard.Planner`.
    """

    epsilon: float = 0.01
    buckets: int = 8192
    decay: float = Balance.decay

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)
        require_whole("buckets", self.buckets, least=1, most=MOST_BINS)
        require_between("decay", self.decay, least=0, most=1)


@dataclass(frozen=True)
class Direct:
    """A scheme that chooses workers directly, such as key grouping or shuffle grouping."""

    scheme: Scheme | Plans


@dataclass(frozen=True)
class ConsistentGrouping:
    """A scheme that chooses virtual workers, and delegation that assigns these to workers."""

    scheme: Scheme | Plans = field(default_factory=RandomChoices)
    """The scheme or the plans that choose virtual workers."""
    virtual_workers: int = 100
    """The number of virtual workers per worker at the start."""
    rules: Rules = field(default_factory=SteadyRules)
    """The rules of delegation."""
    compare_above: float | None = None
    """The utilization of the cluster above which workers compare themselves with the fair load.

    The fair load is the busy time that every worker would have if load were proportional to
    speed. It replaces the thresholds, which do not help when all workers are busy. A central
    component must publish it, because it depends on the measurements of all workers. With None
    workers always use the thresholds.
    """

    def __post_init__(self) -> None:
        require_whole("virtual_workers", self.virtual_workers, least=1)
        if self.compare_above is not None:
            require_between("compare_above", self.compare_above, above=0)


Grouping = Direct | ConsistentGrouping
