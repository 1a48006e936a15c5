"""The grouping strategies that the demo and the deployment experiment run, one value for each.

A strategy holds everything that differs between strategies: its names, its routing, its placement
and the runs that measure it. Code that runs or shows strategies asks these values. Colors and
markers are in `steelyard.report.deployment_styles`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial

from steelyard import schemes
from steelyard.placements import Delegated, Pull
from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.schemes import Scheme


class Coverage(IntEnum):
    """How much of the deployment experiment a strategy runs in."""

    BASIC = 1
    """Slow workers at every delay, and workers of equal speed at the longest delay."""
    CLOSE = 2
    """Also paused executors, and more runs with workers of equal speed."""
    FULL = 3
    """Also changing speeds, other data, more repetitions and more latencies."""


@dataclass(frozen=True)
class WarmUp:
    """Micro-batches that run before anything is measured."""

    batches: int = 1
    seconds: float = 1.5
    """Seconds of work in each micro-batch."""


@dataclass(frozen=True)
class DeployedStrategy:
    """A grouping strategy that runs on Spark."""

    name: str
    """Short name, on the command line and in results.csv."""
    title: str = field(repr=False)
    """Full name, for the demo and for progress bars."""
    label: str = field(repr=False)
    """Name in tables and figures of the deployment experiment."""
    routing: Callable[[int], Balance | RoutingPlan | Scheme] = field(repr=False, compare=False)
    """Returns the routing for a number of partitions."""
    placement: Pull | Delegated = field(default=Pull(), repr=False)
    partitions: int | None = field(default=None, repr=False)
    """Partitions of the worker stage; None: one for each worker."""
    learns: bool = field(default=False, repr=False)
    """Whether sources follow published plans, which improve from slot to slot."""
    shares_machines: bool = field(default=False, repr=False)
    """Whether tasks of different workers run on one machine."""
    coverage: Coverage = field(default=Coverage.BASIC, repr=False)
    is_quick: bool = field(default=False, repr=False)
    """Whether `steelyard deploy --quick` runs it."""
    warm_up: WarmUp = field(default=WarmUp(), repr=False)
    expected_share: float | None = field(default=None, repr=False)
    """Expected efficiency; None: the warm-up shows it."""

    @property
    def is_delegated(self) -> bool:
        """Whether workers keep state and virtual workers move between them."""
        return isinstance(self.placement, Delegated)

    @property
    def placement_name(self) -> str:
        """The placement, as results.csv names it."""
        return "delegated" if self.is_delegated else "pull"


def _by_hash(partitions: int) -> RoutingPlan:
    """Return a plan without counts, which sends every key to the partition of its hash."""
    return Planner(partitions).plan


def _by_scheme(name: str, _: int) -> Scheme:
    """Return a scheme that routes message by message."""
    return schemes.named(name)


def _by_counts(_: int) -> Balance:
    """Return the default settings of balancing."""
    return Balance()


KEY_GROUPING = DeployedStrategy(
    name="kg",
    title="key grouping",
    label="KG, n partitions",
    routing=_by_hash,
    coverage=Coverage.FULL,
    is_quick=True,
)
KEY_GROUPING_200 = DeployedStrategy(
    name="kg-200",
    title="key grouping, 200 partitions",
    label="KG, 200 partitions",
    routing=_by_hash,
    partitions=200,  # Spark's default
    shares_machines=True,
    warm_up=WarmUp(batches=1, seconds=5.0),
)
ROUND_ROBIN = DeployedStrategy(
    name="sg",
    title="round robin",
    label="SG, round robin",
    routing=partial(_by_scheme, "sg"),
    coverage=Coverage.CLOSE,
    is_quick=True,
)
TWO_CHOICES = DeployedStrategy(
    name="pkg",
    title="two choices",
    label="PKG, two choices",
    routing=partial(_by_scheme, "pkg"),
    coverage=Coverage.CLOSE,
)
SALTING = DeployedStrategy(
    name="salting",
    title="salting",
    label="manual salting",
    routing=partial(_by_scheme, "salting"),
)
CONSISTENT_PULL = DeployedStrategy(
    name="cg-pull",
    title="consistent grouping, pull",
    label="CG, pull",
    routing=_by_counts,
    # Several tasks for each worker, so that fast executors take more of them.
    placement=Pull(tasks_per_worker=6),
    learns=True,
    shares_machines=True,
    coverage=Coverage.FULL,
    is_quick=True,
    warm_up=WarmUp(batches=2, seconds=5.0),
    expected_share=0.9,  # the micro-batches of the warm-up are too short to show it
)
CONSISTENT_DELEGATED = DeployedStrategy(
    name="cg-delegated",
    title="consistent grouping",
    label="CG, delegated",
    routing=_by_counts,
    placement=Delegated(),
    learns=True,
    coverage=Coverage.FULL,
    is_quick=True,
    warm_up=WarmUp(batches=5, seconds=5.0),
)

STRATEGIES: tuple[DeployedStrategy, ...] = (
    KEY_GROUPING,
    KEY_GROUPING_200,
    ROUND_ROBIN,
    TWO_CHOICES,
    SALTING,
    CONSISTENT_PULL,
    CONSISTENT_DELEGATED,
)
"""All strategies, in the order in which they run and are shown."""


def strategy_named(name: str) -> DeployedStrategy:
    """Return the strategy with this short name.

    >>> strategy_named("cg-pull").label
    'CG, pull'
    """
    for strategy in STRATEGIES:
        if strategy.name == name:
            return strategy
    known = ", ".join(strategy.name for strategy in STRATEGIES)
    raise ValueError(f"schemes must be one of {known}; got {name!r}")
