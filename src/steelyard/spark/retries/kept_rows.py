"""Steps that leave rows out or order them anew: what is known of the rows that stay.

What is known of the inputs of a step enters; what is known of its result leaves. Where the order of
rows decides which ones stay, those columns are sure that they have in common with the others.
"""

from dataclasses import replace

from steelyard.spark.retries.column_types import exact_columns
from steelyard.spark.retries.plan_text import (
    COLUMN_NUMBER,
    items_of,
    lists_in,
    parts_of,
)
from steelyard.spark.retries.rows import UNSEEN, Doubt, Kind, Rows, Varies, worst
from steelyard.spark.retries.traced_step import TracedStep


def after_filter(traced: TracedStep) -> Rows | None:
    """Doubt which rows stay if the condition is doubted.

    If the condition is about a rank alone, the columns that the rank belongs to stay sure.
    """
    doubts = traced.doubts(traced.step.text)
    doubt = worst(doubts)
    if doubt is None:
        return traced.rows
    if doubt.among is None:
        return replace(traced.rows, varies=max(traced.rows.varies, Varies.ALONE), ordered=False)
    # Which row has a rank is not sure. What all those have in common that may have it is.
    numbers = {int(number) for number in COLUMN_NUMBER.findall(traced.step.text)}
    others = {number for number in numbers if traced.rows.doubt(number) is None}
    is_sure = len(doubts) == 1 and others <= doubt.among
    return _kept_by_order(traced.rows, doubt, doubt.among if is_sure else frozenset())


def _kept_by_order(rows: Rows, doubt: Doubt, common: frozenset[int]) -> Rows:
    """Some rows are left out, and only these columns of those that stay are sure."""
    is_sure = bool(common) and rows.varies is Varies.NOT and rows.about(common) is None
    kept = rows.doubted(replace(doubt, among=None), common if is_sure else ())
    return replace(kept, varies=Varies.NOT if is_sure else Varies.TOGETHER)


def after_deduplicate(traced: TracedStep) -> Rows | None:
    """Doubt all columns except those by which rows are alike."""
    lists = lists_in(traced.step.text)
    if not lists or len(lists) != 1:
        return None
    keys = items_of(lists[0])
    if keys is None or not all(map(traced.rows.has, keys)):
        return None
    numbers = {item.id for item in keys}
    doubt = Doubt("dropDuplicates, which keeps any row of those that are alike", Kind.ORDER)
    kept = traced.rows.doubted(doubt, but=numbers)
    return kept.shuffled(by=traced.rows.about(numbers))


def after_distinct(traced: TracedStep) -> Rows | None:
    """Give up the order; doubt which rows are there if any column is doubted."""
    return traced.rows.shuffled(by=_any_doubt(traced.rows))


def after_sort(traced: TracedStep) -> Rows | None:
    """Give up the order; doubt which rows are there if what sorts them is doubted."""
    return traced.rows.shuffled(by=traced.doubt(traced.step.text))


def after_repartition(traced: TracedStep) -> Rows | None:
    """Give up the order; doubt which rows are there if any column is doubted."""
    return traced.rows.shuffled(by=_any_doubt(traced.rows))


def _any_doubt(rows: Rows) -> Doubt | None:
    return next(iter(rows.doubts.values()), rows.others if rows.ids is None else None)


def after_sample(traced: TracedStep) -> Rows | None:
    """Doubt which rows are there unless they come in the same order."""
    if traced.rows.ordered:
        return traced.rows
    return replace(traced.rows, varies=max(traced.rows.varies, Varies.ALONE))


def after_limit(traced: TracedStep) -> Rows | None:
    """The first rows of a sorted frame have the same values to sort by; others nothing."""
    child = traced.step.children[0]
    if child.name == "LocalLimit":
        child = child.children[0] if len(child.children) == 1 else child
    common: frozenset[int] = frozenset()
    if child.name == "Sort":
        parts = parts_of(child.text)
        lists = lists_in(parts[0]) if parts and parts[-1] == "true" else None
        common = exact_columns(lists[0], traced.kinds) if lists else common
    rows = traced.follow(child, traced.outer)
    return _kept_by_order(rows, Doubt("limit"), common)


def after_watermark(traced: TracedStep) -> Rows | None:
    """Late rows are left out behind it, by a time that must be sure."""
    numbers = traced.step.numbers
    doubt = traced.rows.about(numbers) if numbers else UNSEEN
    if doubt is None:
        return traced.rows
    return replace(traced.rows.doubted(replace(doubt, among=None)), varies=Varies.TOGETHER)
