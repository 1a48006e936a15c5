"""Steps that compute values of many rows: aggregates and windows.

A step with its inputs enters; the rows that it gives leave. A value is deterministic if its
aggregate does not depend on the order of rows.
"""

import re
from dataclasses import replace

from pyspark.sql.types import DecimalType, DoubleType, FloatType

from steelyard.spark.retries.column_types import exact_columns, may_tie
from steelyard.spark.retries.known_functions import AGGREGATES, RANKS
from steelyard.spark.retries.made_columns import projected
from steelyard.spark.retries.plan_text import COLUMN_NUMBER, Item, items_of, lists_in, plain_columns
from steelyard.spark.retries.rows import Doubt, Kind, Rows, Varies
from steelyard.spark.retries.traced_step import TracedStep

_SUM = re.compile(r"sum\(.*\)(?: FILTER \(WHERE .*\))?")

_WHOLE_FRAME = re.compile(
    r"specifiedwindowframe\((RangeFrame|RowFrame, unboundedpreceding\$\(\), unboundedfollowing)"
)
"""Window frames that contain either all or none of the rows that are equal in the order."""


_FRAME = re.compile(r"(?:specifiedwindowframe|unbounded\w+\$|currentrow\$)\(")


def after_aggregate(traced: TracedStep) -> Rows | None:
    """Return the keys of groups and the aggregates of their rows.

    A key has the same doubt as before. Spark normalizes keys: it shows -0.0 as 0.0.
    """
    lists = lists_in(traced.step.text)
    if not lists or len(lists) > 2:
        return None
    items = items_of(lists[-1])
    if items is None:
        return None
    groups = traced.doubt(", ".join(lists[0])) if len(lists) == 2 else None
    result = projected(traced, items, lambda item: _aggregated(traced, item, groups))
    return result.shuffled(by=groups)


def _aggregated(traced: TracedStep, item: Item, groups: Doubt | None = None) -> Doubt | None:
    """Return the doubt about a key of a group or an aggregate of its rows."""
    doubt = traced.doubt(item.expression)
    if doubt is None:
        return None  # computed from keys alone
    if groups is not None or traced.rows.varies is Varies.TOGETHER:
        return Doubt("an aggregate of rows that may differ", common=frozenset())
    more = AGGREGATES
    if _SUM.fullmatch(item.expression):
        data_type = traced.types.get(item.id)
        is_decimal = isinstance(data_type, DecimalType) and data_type.precision < 38
        if isinstance(data_type, FloatType | DoubleType):
            return Doubt("sum() of floating-point numbers", Kind.ORDER)
        if item.is_long or is_decimal:
            more |= {"sum"}
    doubt = traced.doubt(item.expression, more)
    if doubt is None and may_tie(item, traced.types):
        return Doubt("min() or max() of a type whose equal values may differ", Kind.ORDER)
    if doubt is None and traced.rows.varies is not Varies.NOT:
        return Doubt("an aggregate of rows that may differ")
    return doubt


def after_window(traced: TracedStep) -> Rows | None:
    """Return the rows with the columns that are computed over windows."""
    lists = lists_in(traced.step.text)
    if not lists or len(lists) > 3:
        return None
    items = items_of(lists[0])
    if items is None or traced.rows.ids is None:
        return None
    keys = [part for parts in lists[1:] for part in parts]
    about_keys = traced.rows.about(plain_columns(keys))
    is_deterministic = about_keys is None and traced.rows.varies is Varies.NOT
    ranked = exact_columns(keys, traced.types) if is_deterministic else frozenset[int]()
    doubts = {item.id: _over_window(traced, item, ranked) for item in items}
    return replace(
        traced.rows,
        ids=traced.rows.ids + tuple(doubts),
        doubts=dict(traced.rows.doubts)
        | {n: doubt for n, doubt in doubts.items() if doubt is not None},
        names=dict(traced.rows.names) | {item.id: item.name for item in items},
        ordered=False,
    )


def _over_window(traced: TracedStep, item: Item, ranked: frozenset[int]) -> Doubt | None:
    """Return the doubt about a window column; rows of equal rank have the same `ranked` columns."""
    function, found, window = item.expression.rpartition(" windowspecdefinition")
    name = function.partition("(")[0].lower()
    if not found:
        return Doubt("a window", common=frozenset())
    spec = re.sub(r"\w+\$?\(", "(", window)
    if name == "row_number":
        return Doubt("row_number()", Kind.ORDER, ranked)
    is_whole = name in RANKS or _WHOLE_FRAME.search(window) is not None
    doubt = _aggregated(traced, replace(item, expression=function)) if name not in RANKS else None
    doubt = doubt or traced.rows.about({int(n) for n in COLUMN_NUMBER.findall(function + spec)})
    doubt = doubt or traced.doubt(_FRAME.sub("(", window)) or traced.ambiguous_doubt(item)
    if doubt is None and is_whole and traced.rows.varies is Varies.NOT:
        return None
    return Doubt(f"{name}()", Kind.ORDER, frozenset())
