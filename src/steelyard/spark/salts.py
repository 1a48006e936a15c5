"""Choose the salt: the columns by which rows of a hot key are distributed to several workers.

A frame, its key and the user's `salt` enter; columns that are deterministic across task retries
leave. If a retry computed another salt for a row, the row would go to another worker. Then some
rows would arrive twice, and others never.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame

from steelyard.plans import RoutingPlan
from steelyard.spark.caller_warnings import warn_caller
from steelyard.spark.columns import salt_columns, salt_of, shown
from steelyard.spark.retries.repeated import Repeated
from steelyard.spark.retries.rows import Kind

ENOUGH = 100
"""Smallest number of rows in a bucket that justifies a warning and is a large enough sample."""


@dataclass(frozen=True)
class Salts:
    """The columns that distinguish rows of one key."""

    names: tuple[str, ...]
    missing: str = ""
    """The reason why there are no such columns."""
    computed: Mapping[str, Column] = field(default_factory=dict, repr=False, compare=False)
    """The expressions of columns that the frame lacks, by their names."""

    @classmethod
    def of(
        cls, frame: DataFrame, salt: Sequence[str] | None, key: Sequence[str], repeated: Repeated
    ) -> "Salts":
        """Return the columns that the user names, or all deterministic columns besides the key.

        A column that the user names is accepted if the plan does not show how it is computed. It is
        refused if it is known to be random or to depend on the order of rows.

        Args:
            frame: The rows.
            salt: The columns that the user names; None to choose them.
            key: The columns of the key.
            repeated: The properties of the frame across task retries.

        Raises:
            ValueError: A column of `salt` is random or depends on the order of rows, or a column of
                `key` is random.
        """
        _refuse("key", key, repeated, {Kind.RANDOM})
        names = salt_columns(frame, salt, key)
        if salt is not None:
            _refuse("salt", names, repeated, {Kind.RANDOM, Kind.ORDER})
            return cls(tuple(names))
        if set(names) <= set(key):  # the key is all there is
            return cls(tuple(names))
        doubts = {name: why for name in names if (why := _doubt(frame, name, repeated))}
        deterministic = tuple(name for name in names if name not in doubts)
        return cls(deterministic, "" if deterministic else next(iter(doubts.values())))

    def column(self) -> Column:
        """Return a number that differs between rows; it is constant without salt columns."""
        return salt_of(self.names, self.computed)

    def fit(self, plan: RoutingPlan) -> RoutingPlan:
        """Return the plan; without salt columns, it does not split hot keys."""
        return plan if self.names else plan.with_whole(plan.splits)

    def warn_if_missing(self, plan: RoutingPlan) -> bool:
        """Warn if hot keys stay whole for lack of salt columns; return True after a warning."""
        if self.names or not plan.splits:
            return False
        if plan.counts is not None and plan.counts[list(plan.splits)].max() < ENOUGH:
            return False
        self.warn()
        return True

    def warn(self) -> None:
        """Warn that hot keys stay whole, with the reason and the remedy."""
        warn_caller(
            "rows of a hot key stay together, because no column besides the key is known to be "
            f"deterministic across task retries ({self.missing}): name deterministic columns with "
            "`salt`, or write the frame to files first"
        )


def _doubt(frame: DataFrame, name: str, repeated: Repeated) -> str | None:
    """Return the reason why a column cannot be a salt; None if it can."""
    doubt = repeated.doubts.get(name)
    if doubt is not None:
        return f"{name} comes from {doubt.why}"
    if "collate" in frame.schema[name].dataType.simpleString():
        return f"{name} has a collation, under which equal strings may differ"
    return None


def _refuse(argument: str, names: Iterable[str], repeated: Repeated, kinds: set[Kind]) -> None:
    """Raise an error if a column has a doubt of one of these kinds."""
    for name in names:
        doubt = repeated.doubts.get(name)
        if doubt is not None and doubt.kind in kinds:
            raise ValueError(
                f"{argument}: column {shown(name)!r} comes from {doubt.why}; its value may differ "
                "after a task retry, and rows would be lost or duplicated: name other columns, or "
                "write the frame to files first"
            )
