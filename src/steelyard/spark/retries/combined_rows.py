"""Steps with several inputs: joins, unions, intersections and differences.

A step with its inputs enters; the rows that it gives leave.
"""

import re
from dataclasses import replace

from steelyard.spark.retries.plan_text import parts_of
from steelyard.spark.retries.rows import Doubt, Rows, Varies, joined, worst
from steelyard.spark.retries.traced_step import TracedStep

_HINT = re.compile(r"(?:left|right)Hint=\(strategy=\w+\)")


def after_join(traced: TracedStep) -> Rows | None:
    """Return the rows of a join.

    All columns are doubtful if the condition is doubtful, or if an input may replace rows by
    other rows.
    """
    how, *rest = parts_of(traced.step.text) or [""]
    left, right = traced.inputs
    condition = ", ".join(part for part in rest if not _HINT.fullmatch(part))
    doubt = traced.doubt(condition)
    both = joined(traced.inputs)
    together = next((r for r in traced.inputs if r.varies is Varies.TOGETHER), None)
    if doubt is not None or together is not None:
        return replace(
            both.doubted(doubt or Doubt("a join with rows that may differ")),
            varies=Varies.TOGETHER,
        )
    if how in ("LeftSemi", "LeftAnti"):
        return replace(left, varies=both.varies, ordered=False)
    if how not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
        return None
    # If the matching row is missing, an outer join gives nulls.
    missing = Doubt("an outer join with rows that may be missing")
    doubts = dict(both.doubts)
    for side, outer in ((left, ("RightOuter", "FullOuter")), (right, ("LeftOuter", "FullOuter"))):
        if how in outer and side.varies is not Varies.NOT:
            doubts |= dict.fromkeys(side.names, missing)
    return replace(both, doubts=doubts)


def after_union(traced: TracedStep) -> Rows | None:
    """Return the rows of all inputs; a column is doubtful if it is doubtful in any input."""
    first, *others = traced.inputs
    if not others or any(rows.ids is None for rows in traced.inputs):
        return _of_ranges(traced)
    assert first.ids is not None
    doubts = dict(first.doubts)
    for rows in others:
        if rows.ids is None or len(rows.ids) != len(first.ids):
            return None
        for mine, theirs in zip(first.ids, rows.ids, strict=True):
            doubt = rows.doubt(theirs)
            if doubt is not None:
                doubts[mine] = worst([doubt, doubts.get(mine, doubt)]) or doubt
    return replace(
        first,
        doubts=doubts,
        varies=max(rows.varies for rows in traced.inputs),
        ordered=all(rows.ordered for rows in traced.inputs),
    )


def _of_ranges(traced: TracedStep) -> Rows | None:
    """Return the rows of a union of ranges, which have no column numbers, or None."""
    is_deterministic = bool(traced.inputs) and all(
        rows.others is None and not rows.doubts and rows.varies is Varies.NOT
        for rows in traced.inputs
    )
    if not is_deterministic:
        return None
    return replace(traced.rows, ordered=all(rows.ordered for rows in traced.inputs))


def after_compare_sets(traced: TracedStep) -> Rows | None:
    """Return the rows of an intersection or difference; both inputs must be deterministic."""
    if not all(rows.are_deterministic for rows in traced.inputs):
        doubted = traced.rows.doubted(Doubt("a comparison with rows that may differ"))
        return replace(doubted, varies=Varies.TOGETHER)
    return traced.rows.shuffled()
