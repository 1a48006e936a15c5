"""Steps that make columns row by row: what is known of the new columns.

What is known of the inputs of a step enters; what is known of its result leaves. A value is sure if
it is made by functions that are known from values that are sure.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from steelyard.spark.retries.known_functions import GENERATORS
from steelyard.spark.retries.plan_text import Item, items_of, lists_in, parts_of
from steelyard.spark.retries.rows import Doubt, Rows, Varies, given
from steelyard.spark.retries.traced_step import TracedStep

_PLAIN = re.compile(r"[^#(]*#(\d+)L?(?:-T\d+ms)?")
"""A column and nothing else."""


def projected(
    traced: TracedStep, items: Sequence[Item], doubt_about: Callable[[Item], Doubt | None]
) -> Rows:
    """New columns, and old ones that are only passed on."""
    doubts = {}
    for item in items:
        if item.id in traced.rows.names:
            doubt = traced.rows.doubt(item.id)
        else:
            doubt = doubt_about(item)
            if doubt is not None and not _PLAIN.fullmatch(item.expression):
                doubt = doubt.beyond()
        if doubt is not None:
            doubts[item.id] = doubt
    made = replace(
        given(items), doubts=doubts, varies=traced.rows.varies, ordered=traced.rows.ordered
    )
    return _renamed(made, items)


def _renamed(rows: Rows, items: Sequence[Item]) -> Rows:
    """Ranks go with the columns that they belong to under their new numbers."""
    now: dict[int, int] = {}
    for item in items:
        found = _PLAIN.fullmatch(item.expression)
        if found is not None:
            now[int(found[1])] = item.id
    doubts = {
        number: replace(doubt, among=frozenset(now[n] for n in doubt.among if n in now))
        if doubt.among
        else doubt
        for number, doubt in rows.doubts.items()
    }
    return replace(rows, doubts=doubts)


def after_project(traced: TracedStep) -> Rows | None:
    """Follow columns that are made of those of the same row."""
    lists = lists_in(traced.step.text)
    items = items_of(lists[0]) if lists and len(lists) == 1 else None
    if items is None:
        return None
    return projected(traced, items, lambda item: traced.doubt(item.expression))


def after_generate(traced: TracedStep) -> Rows | None:
    """Add the columns of rows that a function makes of each row."""
    parts = parts_of(traced.step.text)
    if not parts or traced.rows.ids is None or not parts[-1].startswith("["):
        return None
    items = items_of(parts_of(parts[-1][1:-1]) or [])
    if items is None:
        return None
    doubt = traced.doubt(parts[0], GENERATORS)
    new = given(items)
    made = replace(
        traced.rows,
        ids=traced.rows.ids + (new.ids or ()),
        names=dict(traced.rows.names) | dict(new.names),
    )
    if doubt is None:
        return made
    doubts = dict(traced.rows.doubts) | dict.fromkeys(new.names, doubt)
    return replace(made, doubts=doubts, varies=max(made.varies, Varies.ALONE), ordered=False)


def after_expand(traced: TracedStep) -> Rows | None:
    """Every row several times, with other values of some columns each time."""
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
    return replace(given(items), doubts=doubts, varies=traced.rows.varies)
