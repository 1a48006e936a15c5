"""The rows that a step gives: their columns, and the doubts about them.

After a shuffle, a retry of a task may get its rows in another order. A value is deterministic if it
is the same in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from steelyard.spark.retries.plan_text import Item


class Kind(Enum):
    """The kinds of reasons why a value may differ after a task retry."""

    RANDOM = "random, or by position"
    ORDER = "by the order of rows"
    UNKNOWN = "unknown"


class Varies(IntEnum):
    """Whether a step may give other rows after a task retry."""

    NOT = 0
    ALONE = 1
    """A row may be missing, independently of the other rows."""
    TOGETHER = 2
    """A row may be missing, and another row then takes its place."""


@dataclass(frozen=True)
class Doubt:
    """A reason why a value may differ after a task retry."""

    why: str
    kind: Kind = Kind.UNKNOWN
    common: frozenset[int] | None = None
    """For a value that ranks rows, such as `row_number`: the columns in which all candidates for a
    rank are equal. None for a value that depends on its own row alone."""

    def without_common(self) -> "Doubt":
        """Return the doubt for a computed value, or for rows of which some were dropped."""
        return replace(self, common=frozenset()) if self.common else self


UNSEEN = Doubt("a column of unknown origin")


@dataclass(frozen=True)
class Rows:
    """The rows that a step gives."""

    ids: tuple[int, ...] | None
    """The numbers of the columns, in their order; None if they are unknown."""
    doubts: Mapping[int, Doubt] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    others: Doubt | None = UNSEEN
    """The doubt about all columns that are not in `names`."""
    varies: Varies = Varies.NOT
    ordered: bool = False
    """True if a retry gets the same rows in the same order."""

    def doubt(self, number: int) -> Doubt | None:
        """Return the doubt about a column; None if the column is deterministic."""
        return self.doubts.get(number) if number in self.names else self.others

    def has(self, item: Item) -> bool:
        """Return True if an item is one of these columns and nothing else.

        >>> from steelyard.spark.retries.plan_text import items_of
        >>> rows = deterministic_rows(items_of(["a#1", "b, c#2"]))
        >>> [rows.has(item) for item in items_of(["a#1", "b, c#2", "x LIKE a#1", "a#3"])]
        [True, True, False, False]
        """
        if item.id not in self.names:  # a range has one column, without a number
            return self.ids is None and self.others is None and item.text == "id"
        name = self.names[item.id]
        return item.text == name or name.endswith(f" AS {item.text}")

    def about(self, numbers: Iterable[int]) -> Doubt | None:
        """Return the worst doubt about some columns; None if all are deterministic."""
        return worst(filter(None, map(self.doubt, numbers)))

    def doubted(self, doubt: Doubt, except_for: Iterable[int] = ()) -> "Rows":
        """Return the rows with a doubt about all columns except some."""
        kept = set(except_for)
        new = {number: doubt for number in self.names if number not in kept}
        ranks = {
            number: old.without_common()
            for number, old in self.doubts.items()
            if old.common is not None
        }
        return replace(self, doubts={**self.doubts, **new, **ranks}, others=doubt, ordered=False)

    def without_common(self) -> "Rows":
        """Return the rows after some were dropped or repeated: ranks have no common columns."""
        return replace(self, doubts={n: doubt.without_common() for n, doubt in self.doubts.items()})

    def shuffled(self, by: Doubt | None = None) -> "Rows":
        """Return the rows in any order.

        If the shuffle is by a doubtful value (`by`), Spark itself may lose rows after a retry.
        """
        varies = self.varies if by is None else max(self.varies, Varies.ALONE)
        return replace(self, ordered=False, varies=varies)

    @property
    def are_deterministic(self) -> bool:
        """True if neither the rows nor their values are doubtful."""
        return self.varies is Varies.NOT and not self.doubts and self.ids is not None


def worst(doubts: Iterable[Doubt]) -> Doubt | None:
    """Return the worst doubt: one about ranks if there is any, else a random value, else the first.

    The result is None if there are no doubts.
    """
    return min(doubts, key=lambda it: (it.common is None, it.kind is not Kind.RANDOM), default=None)


def unknown_rows(why: str) -> Rows:
    """Return rows of which all columns are doubtful."""
    return Rows(None, others=Doubt(why), varies=Varies.TOGETHER)


def deterministic_rows(items: Sequence[Item]) -> Rows:
    """Return deterministic rows with these columns."""
    return Rows(tuple(item.id for item in items), names={item.id: item.text for item in items})


def joined(inputs: Sequence[Rows]) -> Rows:
    """Return the columns of several inputs side by side."""
    if len(inputs) == 1:
        return inputs[0]
    unnumbered = [rows.others for rows in inputs if rows.ids is None]
    return Rows(
        None if unnumbered else tuple(n for rows in inputs for n in rows.ids or ()),
        {number: doubt for rows in inputs for number, doubt in rows.doubts.items()},
        {number: name for rows in inputs for number, name in rows.names.items()},
        next((doubt for doubt in unnumbered if doubt is not None), None) if unnumbered else UNSEEN,
        max(rows.varies for rows in inputs),
    )
