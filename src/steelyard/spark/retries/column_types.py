"""The types of columns within a plan, and which of them have equal values that differ.

The types of a frame's columns enter; those of the columns leave that its columns are copies of.
EXPLAIN itself shows types only where a value is cast or is a long.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegralType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from steelyard.spark.retries.plan_text import Item, Step, items_of, lists_in, plain_columns

_EXACT = (
    BinaryType,
    BooleanType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegralType,
    NullType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

_EXTREME = re.compile(r"(?:min|max)\(.*\)(?: FILTER \(WHERE .*\))?")

_CALL = re.compile(r"\b(?:min|max)\(", re.IGNORECASE)

_OF_COLUMN = re.compile(r"\b(?:min|max)\((?:distinct )?[^()#]*#(\d+)(L?)\)")

_OF_CAST = re.compile(
    r"\b(?:min|max)\((?:distinct )?cast\([^()]* as "
    r"(?:tinyint|smallint|int|bigint|boolean|binary|date|string|timestamp|decimal\(\d+,\d+\))\)\)"
)

_COPY = re.compile(r"(?:(?:min|max)\()?[^#()]*#(\d+)L?(?:-T\d+ms)?\)?")
"""An expression that has the type of its only column."""


def has_ties(kind: DataType) -> bool:
    """True if values of a type may compare as equal and differ, as 0.0 and -0.0 do.

    >>> from pyspark.sql.types import DoubleType
    >>> has_ties(DecimalType(10, 2)), has_ties(DoubleType()), has_ties(ArrayType(DoubleType()))
    (False, True, True)
    """
    if isinstance(kind, ArrayType):
        return has_ties(kind.elementType)
    if isinstance(kind, StructType):
        return any(has_ties(field.dataType) for field in kind.fields)
    if isinstance(kind, StringType):
        return getattr(kind, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    return not isinstance(kind, _EXACT)


def may_tie(item: Item, kinds: Mapping[int, DataType]) -> bool:
    """True unless every min and max in an expression is of a type without ties."""
    if _EXTREME.fullmatch(item.expression):
        if item.is_long:
            return False
        if item.id in kinds:
            return has_ties(kinds[item.id])
    exact = len(_OF_CAST.findall(item.expression))
    for number, long in _OF_COLUMN.findall(item.expression):
        kind = kinds.get(int(number))
        exact += bool(long) or (kind is not None and not has_ties(kind))
    return exact < len(_CALL.findall(item.expression))


def exact_columns(parts: Sequence[str], kinds: Mapping[int, DataType]) -> frozenset[int]:
    """Return the columns that rows are sorted or grouped by, and that have no ties.

    Rows that are equal by the other columns may differ in them, as 0.0 and -0.0 do. Which one of
    them a limit or `row_number` keeps depends on the order in which they arrive.

    >>> from pyspark.sql.types import DoubleType
    >>> kinds = {1: StringType(), 2: DoubleType()}
    >>> sorted(exact_columns(["a#1", "b#2 ASC NULLS FIRST", "c#3L", "d#4"], kinds))
    [1, 3]
    """
    return frozenset(
        number
        for number, is_long in plain_columns(parts).items()
        if is_long or (number in kinds and not has_ties(kinds[number]))
    )


def types_within(plan: Step, kinds: Mapping[int, DataType]) -> dict[int, DataType]:
    """Types of the columns of a plan, from those of its result."""
    found = dict(kinds)
    for step in _downward(plan):
        for number, other in _same_types(step):
            if number in found:
                found.setdefault(other, found[number])
    return found


def _downward(step: Step) -> Iterator[Step]:
    yield step
    for child in step.children:
        yield from _downward(child)


def _same_types(step: Step) -> Iterator[tuple[int, int]]:
    """Pairs of columns, the first one made of the second or in its place in a union."""
    for item in _items(step):
        copied = _COPY.fullmatch(item.expression)
        if copied is not None:
            yield item.id, int(copied[1])
    if step.name == "Union":
        for left, right in pairwise(map(_items, step.children)):
            if len(left) == len(right):
                yield from zip((i.id for i in left), (i.id for i in right), strict=True)


def _items(step: Step) -> Sequence[Item]:
    lists = lists_in(step.text) if step.name in ("Project", "Aggregate") else None
    return items_of(lists[-1]) or () if lists else ()
