"""The types of columns within a plan, and the types whose equal values may differ in bytes.

The types of some columns enter; the types of the columns that they are copied from leave. EXPLAIN
itself shows a type only where a value is cast or is a long.
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


def has_ties(data_type: DataType) -> bool:
    """Return True if values of a type may compare as equal and differ in bytes, as 0.0 and -0.0 do.

    >>> from pyspark.sql.types import DoubleType
    >>> has_ties(DecimalType(10, 2)), has_ties(DoubleType()), has_ties(ArrayType(DoubleType()))
    (False, True, True)
    """
    if isinstance(data_type, ArrayType):
        return has_ties(data_type.elementType)
    if isinstance(data_type, StructType):
        return any(has_ties(field.dataType) for field in data_type.fields)
    if isinstance(data_type, StringType):
        return getattr(data_type, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    return not isinstance(data_type, _EXACT)


def may_tie(item: Item, types: Mapping[int, DataType]) -> bool:
    """Return False if every min and max in an expression is known to be of a type without ties."""
    if _EXTREME.fullmatch(item.expression):
        if item.is_long:
            return False
        if item.id in types:
            return has_ties(types[item.id])
    exact = len(_OF_CAST.findall(item.expression))
    for number, long in _OF_COLUMN.findall(item.expression):
        data_type = types.get(int(number))
        exact += bool(long) or (data_type is not None and not has_ties(data_type))
    return exact < len(_CALL.findall(item.expression))


def is_exact(number: int, types: Mapping[int, DataType], *, is_long: bool) -> bool:
    """Return True if a column is known to have no ties."""
    return is_long or (number in types and not has_ties(types[number]))


def exact_columns(parts: Sequence[str], types: Mapping[int, DataType]) -> frozenset[int]:
    """Return the sort keys or partition keys of a step whose types have no ties.

    A key of another type may have values that are equal and differ, as 0.0 and -0.0 do. The order
    in which such rows arrive decides which of them a limit or `row_number` keeps.

    >>> from pyspark.sql.types import DoubleType
    >>> types = {1: StringType(), 2: DoubleType()}
    >>> sorted(exact_columns(["a#1", "b#2 ASC NULLS FIRST", "c#3L", "d#4"], types))
    [1, 3]
    """
    return frozenset(
        number
        for number, is_long in plain_columns(parts).items()
        if is_exact(number, types, is_long=is_long)
    )


def types_within(plan: Step, types: Mapping[int, DataType]) -> dict[int, DataType]:
    """Return the types of more columns of a plan, derived from the types of some columns."""
    found = dict(types)
    for step in _downward(plan):
        for number, other in _same_types(step):
            if number in found:
                found.setdefault(other, found[number])
    return found


def _downward(step: Step) -> Iterator[Step]:
    """Yield a step and then the steps before it."""
    yield step
    for child in step.children:
        yield from _downward(child)


def _same_types(step: Step) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns that have the same type.

    The first column of a pair is a copy of the second one, or both have the same place in a union.
    """
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
