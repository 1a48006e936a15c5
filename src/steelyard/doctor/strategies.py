"""The grouping strategies that the doctor compares, one value for each.

A strategy holds its names for people and the function that computes its loads. Everything that
shows or compares strategies iterates over `STRATEGIES`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from steelyard.doctor.loads import (
    TaskLoads,
    Workload,
    loads_by_hash,
    loads_by_plan,
    loads_by_round_robin,
    loads_by_scheme,
)
from steelyard.doctor.spark_loads import (
    loads_by_adaptive_execution,
    loads_by_map_side,
    loads_by_more_partitions,
    loads_by_smaller_tasks,
)


@dataclass(frozen=True)
class GroupingStrategy:
    """A strategy that assigns messages to workers by their keys."""

    name: str
    """Short name, as in JSON."""
    title: str = field(repr=False)
    """Full name, for a progress bar."""
    label: str = field(repr=False)
    """Name beside a bar of a figure."""
    description: str = field(repr=False)
    """Code or name that users know; `{workers}`, `{tasks}` and `{key}` are filled in."""
    loads: Callable[[Workload], TaskLoads] = field(repr=False, compare=False)
    """Function that computes the loads of the workers."""
    works: tuple[str, ...] = field(default=(), repr=False)
    """Names of the kinds of work that the strategy is for; empty for all kinds."""
    is_ours: bool = field(default=False, repr=False)
    """Whether Steelyard's own functions use this strategy."""

    def described(self, workers: int, key: Sequence[str], tasks: int | None = None) -> str:
        """Fill in the description.

        >>> KEY_GROUPING.described(8, ["page"]), MORE_PARTITIONS.described(8, ["page"], 64)
        ('repartition(8, page)', 'repartition(64, page)')
        """
        return self.description.format(workers=workers, tasks=tasks, key=", ".join(key))


KEY_GROUPING = GroupingStrategy(
    name="kg",
    title="Key grouping",
    label="KG, by key",
    description="repartition({workers}, {key})",
    loads=loads_by_hash,
)
MORE_PARTITIONS = GroupingStrategy(
    name="kg-more",
    title="More partitions",
    label="KG, more tasks",
    description="repartition({tasks}, {key})",
    loads=loads_by_more_partitions,
    works=("python", "write"),
)
ADAPTIVE_JOIN = GroupingStrategy(
    name="adaptive",
    title="Adaptive execution",
    label="Spark's join",
    description="Spark's own join",
    loads=loads_by_adaptive_execution,
    works=("join",),
)
SMALLER_TASKS = GroupingStrategy(
    name="adaptive-small",
    title="Smaller tasks",
    label="join, smaller tasks",
    description="join with smaller tasks",
    loads=loads_by_smaller_tasks,
    works=("join",),
)
COMBINED = GroupingStrategy(
    name="combined",
    title="Combined aggregate",
    label="groupBy",
    description="groupBy({key})",
    loads=loads_by_map_side,
    works=("aggregate",),
)
ROUND_ROBIN = GroupingStrategy(
    name="sg",
    title="Round robin",
    label="SG, round robin",
    description="repartition({workers})",
    loads=loads_by_round_robin,
)
SALTING = GroupingStrategy(
    name="salting",
    title="Salting",
    label="salting, 10 per key",
    description="manual salting, 10 a key",
    loads=partial(loads_by_scheme, "salting"),
)
TWO_CHOICES = GroupingStrategy(
    name="pkg",
    title="Two choices",
    label="PKG, two choices",
    description="PKG, two choices per key",
    loads=partial(loads_by_scheme, "pkg"),
)
D_CHOICES = GroupingStrategy(
    name="dchoices",
    title="D-Choices",
    label="D-Choices",
    description="D-Choices",
    loads=partial(loads_by_scheme, "dchoices"),
)
CONSISTENT_GROUPING = GroupingStrategy(
    name="cg",
    title="Consistent grouping",
    label="CG, steelyard",
    description="steelyard (CG)",
    loads=loads_by_plan,
    is_ours=True,
)

STRATEGIES = (
    KEY_GROUPING,
    MORE_PARTITIONS,
    ADAPTIVE_JOIN,
    SMALLER_TASKS,
    COMBINED,
    ROUND_ROBIN,
    SALTING,
    TWO_CHOICES,
    D_CHOICES,
    CONSISTENT_GROUPING,
)
"""All strategies, in the order in which they are shown."""

REMEDIES = (MORE_PARTITIONS, SMALLER_TASKS)
"""Spark's own remedies, which change a number and no code."""


def compared(work: str) -> tuple[GroupingStrategy, ...]:
    """Return the strategies that are compared for a kind of work.

    >>> [strategy.name for strategy in compared("join")]
    ['kg', 'adaptive', 'adaptive-small', 'sg', 'salting', 'pkg', 'dchoices', 'cg']
    """
    return tuple(s for s in STRATEGIES if not s.works or work in s.works)


def of_spark(work: str) -> GroupingStrategy:
    """Return the strategy of Spark's own code for a kind of work.

    >>> of_spark("join").name, of_spark("python").name
    ('adaptive', 'kg')
    """
    return {"join": ADAPTIVE_JOIN, "aggregate": COMBINED}.get(work, KEY_GROUPING)
