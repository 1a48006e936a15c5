"""What tells the rows of a hot key apart, so that they can go to several workers.

A frame, its key and what the user says enter; columns leave whose values are the same when a task
is run again. A row whose salt differs goes elsewhere then: some rows arrive twice, others never.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from steelyard.plans import RoutingPlan
from steelyard.spark.columns import salt_columns, salt_of
from steelyard.spark.retries.repeated import Repeated
from steelyard.spark.retries.rows import Kind

ENOUGH = 100
"""So many rows of a bucket are worth a warning, and say something about the others."""


@dataclass(frozen=True)
class Salts:
    """The columns that tell rows of a key apart."""

    names: tuple[str, ...]
    missing: str = ""
    """Why there are none."""

    @classmethod
    def of(
        cls, frame: DataFrame, salt: Sequence[str] | None, key: Sequence[str], repeated: Repeated
    ) -> "Salts":
        """Those that the user names, or all others that are sure to be the same again.

        The user is believed where Spark does not show how a column is made. Columns that are known
        to be made by chance, or from the order of rows, are refused.
        """
        _refuse("key", key, repeated, {Kind.RANDOM})
        names = salt_columns(frame, salt, key)
        if salt is not None:
            _refuse("salt", names, repeated, {Kind.RANDOM, Kind.ORDER})
            return cls(tuple(names))
        if set(names) <= set(key):  # there is nothing else
            return cls(tuple(names))
        doubts = {name: why for name in names if (why := _doubt(frame, name, repeated))}
        sure = tuple(name for name in names if name not in doubts)
        return cls(sure, "" if sure else next(iter(doubts.values())))

    def column(self) -> Column:
        """A number that differs from row to row; the same for all if there is nothing to tell."""
        return salt_of(self.names)

    def fit(self, plan: RoutingPlan) -> RoutingPlan:
        """The plan, with hot keys whole if there is nothing that tells their rows apart."""
        return plan if self.names else plan.with_whole(plan.splits)

    def warn_if_missing(self, plan: RoutingPlan, stacklevel: int) -> bool:
        """Say that hot keys stay whole, why, and what to do; False if there is nothing to say."""
        if self.names or not plan.splits:
            return False
        if plan.counts is not None and plan.counts[list(plan.splits)].max() < ENOUGH:
            return False
        self.warn(stacklevel + 1)
        return True

    def warn(self, stacklevel: int) -> None:
        """Say that hot keys stay whole, why, and what to do."""
        warnings.warn(
            "rows of a hot key stay together, as no column besides the key is known to be the "
            f"same when a task is run again ({self.missing}); name columns that are with salt=, "
            "or write the frame to files first",
            stacklevel=stacklevel + 1,
        )


def _doubt(frame: DataFrame, name: str, repeated: Repeated) -> str | None:
    doubt = repeated.doubts.get(name)
    if doubt is not None:
        return f"{name} comes from {doubt.why}"
    if "collate" in frame.schema[name].dataType.simpleString():
        return f"{name} has a collation: of texts that it calls equal any may have been kept"
    return None


def _refuse(argument: str, names: Iterable[str], repeated: Repeated, kinds: set[Kind]) -> None:
    for name in names:
        doubt = repeated.doubts.get(name)
        if doubt is not None and doubt.kind in kinds:
            raise ValueError(
                f"{argument}: column {name!r} comes from {doubt.why}; it may have another value "
                "when a task is run again, and rows would be lost or doubled; name other columns, "
                "or write the frame to files first"
            )
