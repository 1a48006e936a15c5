"""What is known of rows, and of the values in them, when a task is run again.

Rows behind a shuffle come in another order then. A value is sure if it is the same in any order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from steelyard.spark.retries.plan_text import Item


class Kind(Enum):
    """What is known of a value that may differ."""

    RANDOM = "by chance or position"
    ORDER = "by the order of rows"
    UNKNOWN = "unknown"


class Varies(IntEnum):
    """Whether other rows may be there when a task is run again."""

    NOT = 0
    ALONE = 1
    """A row may be missing, whatever becomes of the others."""
    TOGETHER = 2
    """If a row is missing another one takes its place."""


@dataclass(frozen=True)
class Doubt:
    """Why a value may differ when a task is run again."""

    why: str
    kind: Kind = Kind.UNKNOWN
    among: frozenset[int] | None = None
    """If it sets rows against each other: the columns that have the same values again wherever this
    one has the same. None: it is about one row alone."""

    def beyond(self) -> "Doubt":
        """The same about what is made of the value, or after some rows were left out."""
        return replace(self, among=frozenset()) if self.among else self


UNSEEN = Doubt("a column of unknown origin")


@dataclass(frozen=True)
class Rows:
    """What is known of the rows that a step gives."""

    ids: tuple[int, ...] | None
    """The numbers of the columns, in their order, if they are known."""
    doubts: Mapping[int, Doubt] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    others: Doubt | None = UNSEEN
    """Of all columns that are not in `names`."""
    varies: Varies = Varies.NOT
    ordered: bool = False
    """The same rows in the same order."""

    def doubt(self, number: int) -> Doubt | None:
        """About a column; None if it is sure."""
        return self.doubts.get(number) if number in self.names else self.others

    def has(self, item: Item) -> bool:
        """True if an item is one of these columns and nothing else.

        >>> from steelyard.spark.retries.plan_text import items_of
        >>> rows = given(items_of(["a#1", "b, c#2"]))
        >>> [rows.has(item) for item in items_of(["a#1", "b, c#2", "x LIKE a#1", "a#3"])]
        [True, True, False, False]
        """
        if item.id not in self.names:  # a range has one column, and does not tell its number
            return self.ids is None and self.others is None and item.text == "id"
        name = self.names[item.id]
        return item.text == name or name.endswith(f" AS {item.text}")

    def about(self, numbers: Iterable[int]) -> Doubt | None:
        """A doubt about some columns."""
        return worst(filter(None, map(self.doubt, numbers)))

    def doubted(self, doubt: Doubt, but: Iterable[int] = ()) -> "Rows":
        """All columns doubted, but for some."""
        more = {number: doubt for number in self.names if number not in set(but)}
        ranks = {n: old.beyond() for n, old in self.doubts.items() if old.among is not None}
        return replace(self, doubts={**self.doubts, **more, **ranks}, others=doubt, ordered=False)

    def beyond(self) -> "Rows":
        """Some rows are left out, or are there more than once: their ranks say no more."""
        return replace(self, doubts={n: doubt.beyond() for n, doubt in self.doubts.items()})

    def shuffled(self, by: Doubt | None = None) -> "Rows":
        """In any order; if it is not sure where they go, Spark itself may lose some."""
        varies = self.varies if by is None else max(self.varies, Varies.ALONE)
        return replace(self, ordered=False, varies=varies)

    @property
    def are_sure(self) -> bool:
        """Nothing about them is in doubt."""
        return self.varies is Varies.NOT and not self.doubts and self.ids is not None


def worst(doubts: Iterable[Doubt]) -> Doubt | None:
    """One of them: about several rows if there are any, then by chance, then the first."""
    return min(doubts, key=lambda it: (it.among is None, it.kind is not Kind.RANDOM), default=None)


def unknown(why: str) -> Rows:
    """Rows of which nothing is sure."""
    return Rows(None, others=Doubt(why), varies=Varies.TOGETHER)


def given(items: Sequence[Item]) -> Rows:
    """Rows with these columns and no expressions, of which all is sure."""
    return Rows(tuple(item.id for item in items), names={item.id: item.text for item in items})


def joined(inputs: Sequence[Rows]) -> Rows:
    """Columns of several inputs side by side."""
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
