"""Steps that compute columns row by row.

A step with its inputs enters; the rows that it gives leave. A new value is deterministic if
deterministic functions compute it from deterministic values.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from steelyard.spark.retries.known_functions import GENERATORS
from steelyard.spark.retries.plan_text import Item, items_of, lists_in, parts_of
from steelyard.spark.retries.rows import UNSEEN, Doubt, Rows, Varies, deterministic_rows, worst
from steelyard.spark.retries.traced_step import TracedStep

_PLAIN = re.compile(r"[^#(]*#(\d+)L?(?:-T\d+ms)?")
"""One column and nothing else."""


def projected(
    traced: TracedStep, items: Sequence[Item], doubt_about: Callable[[Item], Doubt | None]
) -> Rows:
    """Return rows with new columns, and with input columns that are passed on unchanged."""
    rows = traced.rows
    doubts = {}
    mixed = _mixed_up(traced, items, doubt_about)
    for item in items:
        if rows.has(item):
            doubt = rows.doubt(item.id)
        else:
            doubt = _about_new(traced, item, doubt_about) or mixed
            if doubt is not None and not _PLAIN.fullmatch(item.expression):
                doubt = doubt.without_common()
        if doubt is not None:
            doubts[item.id] = doubt
    names = {item.id: rows.names.get(item.id, item.name) for item in items}
    result = replace(
        deterministic_rows(items),
        doubts=doubts,
        names=names,
        varies=rows.varies,
        ordered=rows.ordered,
    )
    return _renamed(result, items)


def _about_new(
    traced: TracedStep, item: Item, doubt_about: Callable[[Item], Doubt | None]
) -> Doubt | None:
    """Return the doubt about a column that the step computes."""
    if _is_not_new(traced, item):
        return traced.rows.others or UNSEEN
    return doubt_about(item) or traced.ambiguous_doubt(item)


def _is_not_new(traced: TracedStep, item: Item) -> bool:
    """Return True if an apparent new column may be an input column of unknown origin."""
    is_unknown = traced.rows.ids is None and traced.rows.others is not None
    return is_unknown or not item.is_named or item.id in traced.step.numbers_below


def _mixed_up(
    traced: TracedStep, items: Sequence[Item], doubt_about: Callable[[Item], Doubt | None]
) -> Doubt | None:
    """Return a doubt about all new columns if a literal may split one of them into two.

    Such a split gives one column too many. That column is not new, or no later step mentions it.
    """
    new = [item for item in items if not traced.rows.has(item)]
    is_mixed = any(_is_not_new(traced, item) for item in new)
    if traced.used is not None and not all(item.is_complete for item in new):
        is_mixed |= not traced.used.issuperset(item.id for item in new)
    if not is_mixed:
        return None
    whole = (replace(item, expression=item.text) for item in new)
    return worst(filter(None, map(doubt_about, whole)))


def _renamed(rows: Rows, items: Sequence[Item]) -> Rows:
    """Return the rows with the common columns of ranks under their new numbers."""
    now: dict[int, int] = {}
    for item in items:
        found = _PLAIN.fullmatch(item.expression)
        if found is not None:
            now[int(found[1])] = item.id
    doubts = {
        number: replace(doubt, common=frozenset(now[n] for n in doubt.common if n in now))
        if doubt.common
        else doubt
        for number, doubt in rows.doubts.items()
    }
    return replace(rows, doubts=doubts)


def after_project(traced: TracedStep) -> Rows | None:
    """Return the rows of a projection."""
    lists = lists_in(traced.step.text)
    items = items_of(lists[0]) if lists and len(lists) == 1 else None
    if items is None:
        return None
    return projected(traced, items, lambda item: traced.doubt(item.expression))


def after_generate(traced: TracedStep) -> Rows | None:
    """Return the rows with the columns that a generator such as `explode` adds."""
    parts = parts_of(traced.step.text)
    if not parts or traced.rows.ids is None or not parts[-1].startswith("["):
        return None
    items = items_of(parts_of(parts[-1][1:-1]) or [])
    if items is None:
        return None
    doubt = traced.doubt(", ".join(parts[:-1]), GENERATORS)
    new = deterministic_rows(items)
    result = replace(
        traced.rows,
        ids=traced.rows.ids + (new.ids or ()),
        names=dict(traced.rows.names) | dict(new.names),
    )
    if doubt is None:
        return result
    doubts = dict(traced.rows.doubts) | dict.fromkeys(new.names, doubt)
    return replace(result, doubts=doubts, varies=max(result.varies, Varies.ALONE), ordered=False)


def after_expand(traced: TracedStep) -> Rows | None:
    """Return the rows of a step that repeats each row with other values in some columns."""
    lists = lists_in(traced.step.text)
    items = items_of(lists[-1]) if lists and len(lists) == 2 else None
    if items is None or lists is None:
        return None
    doubts: dict[int, Doubt] = {}
    for values in lists[0]:
        parts = parts_of(values[1:-1])
        if parts is None or len(parts) != len(items):
            return None
        for item, part in zip(items, parts, strict=True):
            doubt = traced.doubt(part)
            if doubt is not None:
                doubts[item.id] = doubt
    return replace(deterministic_rows(items), doubts=doubts, varies=traced.rows.varies)
