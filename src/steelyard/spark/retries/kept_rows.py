"""Steps that drop or reorder rows.

A step with its inputs enters; the rows that it gives leave. Where the order of rows decides which
of them are kept, only the columns that all candidates have in common are deterministic.
"""

from dataclasses import replace

from steelyard.spark.retries.column_types import exact_columns, is_exact
from steelyard.spark.retries.plan_text import COLUMN_NUMBER, items_of, lists_in, parts_of
from steelyard.spark.retries.rows import UNSEEN, Doubt, Kind, Rows, Varies, worst
from steelyard.spark.retries.traced_step import TracedStep


def after_filter(traced: TracedStep) -> Rows | None:
    """Return the rows that a filter keeps; a doubtful condition makes the kept rows doubtful.

    If the condition uses only a rank, the common columns of the rank stay deterministic.
    """
    doubts = traced.doubts(traced.step.text)
    doubt = worst(doubts)
    if doubt is None:
        return traced.rows
    if doubt.common is None:
        return replace(traced.rows, varies=max(traced.rows.varies, Varies.ALONE), ordered=False)
    # Another row may have the rank after a retry, but it has the same common columns.
    numbers = {int(number) for number in COLUMN_NUMBER.findall(traced.step.text)}
    others = {number for number in numbers if traced.rows.doubt(number) is None}
    is_deterministic = len(doubts) == 1 and others <= doubt.common
    return _kept_by_order(traced.rows, doubt, doubt.common if is_deterministic else frozenset())


def _kept_by_order(rows: Rows, doubt: Doubt, common: frozenset[int]) -> Rows:
    """Return the rows after some were dropped; only their common columns are deterministic."""
    is_deterministic = bool(common) and rows.varies is Varies.NOT and rows.about(common) is None
    kept = rows.doubted(replace(doubt, common=None), common if is_deterministic else ())
    return replace(kept, varies=Varies.NOT if is_deterministic else Varies.TOGETHER)


def after_deduplicate(traced: TracedStep) -> Rows | None:
    """Return one row for each key; all columns except the key are doubtful.

    A stream gives the first row that arrives, so that a key with ties is doubtful too. In a batch,
    Spark normalizes the key: it shows -0.0 as 0.0.
    """
    lists = lists_in(traced.step.text)
    if not lists or len(lists) != 1:
        return None
    keys = items_of(lists[0])
    if keys is None or not all(map(traced.rows.has, keys)):
        return None
    numbers = {item.id for item in keys}
    doubt = Doubt("dropDuplicates, which keeps any one of the duplicates", Kind.ORDER)
    exact = {
        item.id
        for item in keys
        if not traced.is_streaming or is_exact(item.id, traced.types, is_long=item.is_long)
    }
    kept = traced.rows.doubted(doubt, except_for=exact)
    return kept.shuffled(by=traced.rows.about(numbers))


def after_distinct(traced: TracedStep) -> Rows | None:
    """Return the distinct rows, in any order; a doubtful column makes the rows doubtful."""
    return traced.rows.shuffled(by=_any_doubt(traced.rows))


def after_sort(traced: TracedStep) -> Rows | None:
    """Return the rows in any order; a doubtful sort key makes the rows doubtful."""
    return traced.rows.shuffled(by=traced.doubt(traced.step.text))


def after_repartition(traced: TracedStep) -> Rows | None:
    """Return the rows in any order; a doubtful column makes the rows doubtful."""
    return traced.rows.shuffled(by=_any_doubt(traced.rows))


def _any_doubt(rows: Rows) -> Doubt | None:
    return next(iter(rows.doubts.values()), rows.others if rows.ids is None else None)


def after_sample(traced: TracedStep) -> Rows | None:
    """Return a sample, which is deterministic only if the input keeps its order."""
    if traced.rows.ordered:
        return traced.rows
    return replace(traced.rows, varies=max(traced.rows.varies, Varies.ALONE))


def after_limit(traced: TracedStep) -> Rows | None:
    """Return the first rows; if they are sorted, their sort keys without ties are deterministic."""
    child = traced.step.children[0]
    if child.name == "LocalLimit":
        child = child.children[0] if len(child.children) == 1 else child
    common: frozenset[int] = frozenset()
    if child.name == "Sort":
        parts = parts_of(child.text)
        lists = lists_in(parts[0]) if parts and parts[-1] == "true" else None
        common = exact_columns(lists[0], traced.types) if lists else common
    rows = traced.follow(child, traced.outer)
    return _kept_by_order(rows, Doubt("limit"), common)


def after_watermark(traced: TracedStep) -> Rows | None:
    """Return the rows; later steps drop late rows, by a time that must be deterministic."""
    numbers = traced.step.numbers
    doubt = traced.rows.about(numbers) if numbers else UNSEEN
    if doubt is None:
        return traced.rows
    return replace(traced.rows.doubted(replace(doubt, common=None)), varies=Varies.TOGETHER)
