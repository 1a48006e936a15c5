"""Show the result of the doctor in a notebook. An examination enters; HTML leaves."""

from typing import TYPE_CHECKING

from steelyard.showing import (
    OURS,
    PLAIN,
    Markup,
    card,
    code,
    counted,
    paragraph,
    short_bar,
    table_as_html,
)

if TYPE_CHECKING:
    from steelyard.doctor.examination import Examination

_LISTED = 5
"""Hottest keys that are listed."""


def line_of(found: "Examination") -> str:
    """Return the result in one line."""
    messages, keys = counted(found.messages, "message"), counted(found.keys, "key")
    return f"{found.heading}: {messages}, {keys}, skew {found.skewed}: {found.advice.what}"


def html_of(found: "Examination") -> Markup:
    """Return the verdict, the hottest keys, the cost of each strategy and the advice."""
    parts = [paragraph(found.verdict), _keys(found)]
    if found.over_time is not None:
        parts.append(paragraph(found.drift.partition(" The hottest key in each")[0]))
    advice = found.advice
    heading = f"Examination: {found.heading}, for {counted(found.workers, 'worker')}"
    what = f"{advice.what[0].upper()}{advice.what[1:]}:"
    return card(heading, *parts, _costs(found), paragraph(what), code(advice.code))


def _keys(found: "Examination") -> Markup:
    rows: list[tuple[object, ...]] = [
        (str(hot), f"{100 * hot.share:.2f} %", short_bar(hot.share / found.p1, PLAIN))
        for hot in found.top[:_LISTED]
    ]
    listed = sum(hot.messages for hot in found.top[:_LISTED])
    left = found.keys - len(found.top[:_LISTED])
    if left:
        rest = f"{100 * (1 - listed / found.messages):.2f} %"
        rows.append((f"{left:,} other keys", rest, ""))
    return table_as_html(("hottest keys", "of the messages", ""), rows, texts=(0, 2))


def _costs(found: "Examination") -> Markup:
    slowest = max(cost.slowdown for cost in found.costs)
    rows = [
        (
            found.description_of(cost),
            f"{cost.slowdown:.2f} ×",
            short_bar(cost.slowdown / slowest, OURS if cost.strategy.is_ours else PLAIN),
            f"{cost.copies:.2f}",
        )
        for cost in found.costs
    ]
    head = ("strategy", "slowdown", "", "copies of a key")
    return table_as_html(head, rows, texts=(0, 2))
