"""The grouping strategies that the doctor compares, one value for each.

A strategy holds its names for people and the function that computes its loads. Everything that
shows or compares strategies iterates over `STRATEGIES`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from steelyard.doctor.loads import (
    WorkerLoads,
    Workload,
    loads_by_hash,
    loads_by_plan,
    loads_by_round_robin,
    loads_by_scheme,
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
    """Code or name that users know; `{workers}` and `{key}` are filled in."""
    loads: Callable[[Workload], WorkerLoads] = field(repr=False, compare=False)
    """Function that computes the loads of the workers."""
    is_ours: bool = field(default=False, repr=False)
    """Whether Steelyard's own functions use this strategy."""

    def described(self, workers: int, key: Sequence[str]) -> str:
        """Fill in the description.

        >>> KEY_GROUPING.described(8, ["page"])
        'repartition(8, page)'
        """
        return self.description.format(workers=workers, key=", ".join(key))


KEY_GROUPING = GroupingStrategy(
    name="kg",
    title="Key grouping",
    label="KG, by key",
    description="repartition({workers}, {key})",
    loads=loads_by_hash,
)
ROUND_ROBIN = GroupingStrategy(
    name="sg",
    title="Round robin",
    label="SG, round robin",
    description="repartition({workers}), round robin",
    loads=loads_by_round_robin,
)
SALTING = GroupingStrategy(
    name="salting",
    title="Salting",
    label="salting, 10 per key",
    description="manual salting, 10 per key",
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

STRATEGIES = (KEY_GROUPING, ROUND_ROBIN, SALTING, TWO_CHOICES, D_CHOICES, CONSISTENT_GROUPING)
"""All strategies, in the order in which they are shown."""
