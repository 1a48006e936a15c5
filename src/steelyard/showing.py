"""Show an object: tables for a terminal, and tables and pictures for a notebook.

Texts and numbers enter; plain text or HTML leaves. The HTML is complete in itself: it has no
scripts, no style sheets and no addresses. Text has the color of the page, so that it is readable in
a light and in a dark notebook.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.key_text import columns_of
from steelyard.printable import printable

OURS, PLAIN = "#2b86c9", "#cc7219"
"""Colors that are visible on white and on black, and that color-blind readers can distinguish."""

_CARD = "font-size:13px;line-height:1.5;max-width:680px"
_TABLE = "border-collapse:collapse;border:0;margin:6px 0;font-size:inherit"
_ROW = "background:none"
_CELL = "padding:1px 16px 1px 0;border:0;border-bottom:1px solid #80808050;text-align:{};{}"
_NUMBER, _TEXT = "white-space:nowrap;font-variant-numeric:tabular-nums", "white-space:pre-wrap"

_WIDTH, _HEIGHT, _ABOVE, _BELOW = 640, 100, 34, 16
"""The size of the bars of a picture, and the space for its legend and for the first and last name,
in pixels."""
_MOST_BARS = 128
"""A picture of more bars shows the largest of each group of neighbors."""
_WIDEST_BAR = 90
_SHORT_BAR = 90
"""Width of a bar in a table, in pixels."""


class Markup(str):
    """Text that is HTML already; `table_as_html` escapes all other text."""

    __slots__ = ()


@dataclass(frozen=True)
class Bars:
    """One number for each worker or slot, drawn as bars.

    Args:
        label: The meaning of the numbers.
        values: The numbers, at least 0.
        color: The color of the bars.
        is_outline: Whether the bars are drawn as outlines, behind the bars of others.
    """

    label: str
    values: Sequence[float]
    color: str = OURS
    is_outline: bool = False


def escaped(text: object) -> Markup:
    """Escape a text for HTML, and its unprintable characters.

    >>> escaped("<script>alert('x')</script>")
    '&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;'
    """
    return Markup(html.escape(printable(text), quote=True))


def card(title: str, *parts: Markup) -> Markup:
    """Return a title and the parts below it.

    >>> card("1 < 2", paragraph("yes"))
    '<div style="..."><div style="font-weight:600">1 &lt; 2</div><div>yes</div></div>'
    """
    heading = f'<div style="font-weight:600">{escaped(title)}</div>'
    return Markup(f'<div style="{_CARD}">{heading}{"".join(parts)}</div>')


def paragraph(text: str) -> Markup:
    """Return a paragraph of plain text."""
    return Markup(f"<div>{escaped(text)}</div>")


def code(text: str) -> Markup:
    """Return a line of code."""
    style = "background:none;color:inherit;white-space:pre-wrap"
    return Markup(f'<div style="margin:4px 0"><code style="{style}">{escaped(text)}</code></div>')


def table_as_html(
    head: Sequence[str], rows: Iterable[Sequence[object]], texts: Iterable[int] = (0,)
) -> Markup:
    """Return a table; the columns `texts` are aligned to the left, numbers to the right.

    >>> table_as_html(["key"], [["<b>"]])
    '<table ...><tr ...><th ...>key</th></tr><tr ...><td ...>&lt;b&gt;</td></tr></table>'
    """
    left = set(texts)
    lines = [_row("th", head, left), *(_row("td", row, left) for row in rows)]
    return Markup(f'<table style="{_TABLE}">{"".join(lines)}</table>')


def _row(tag: str, cells: Sequence[object], left: set[int]) -> str:
    shown = (_cell(tag, cell, is_text=place in left) for place, cell in enumerate(cells))
    return f'<tr style="{_ROW}">{"".join(shown)}</tr>'


def _cell(tag: str, content: object, *, is_text: bool) -> str:
    style = _CELL.format(*(("left", _TEXT) if is_text else ("right", _NUMBER)))
    inner = content if isinstance(content, Markup) else escaped(content)
    return f'<{tag} style="{style}">{inner}</{tag}>'


def table_as_text(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: Iterable[int] = (0,)
) -> list[str]:
    """Return the lines of a table for a terminal, aligned like `table_as_html`.

    >>> table_as_text(["key", "rows"], [["日本", "1,000"], ["a", "2"]])
    ['key    rows', '日本  1,000', 'a         2']
    """
    lines = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(columns_of, cells)) for cells in zip(*lines, strict=True)]
    left = set(texts)
    aligned = ("  ".join(_aligned(line, widths, left)) for line in lines)
    return [line.rstrip() for line in aligned]


def _aligned(cells: Sequence[str], widths: Sequence[int], left: set[int]) -> Iterable[str]:
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - columns_of(cell))
        yield cell + space if place in left else space + cell


def short_bar(part: float, color: str = OURS) -> Markup:
    """Return a bar for a table; 1 is the full length."""
    length = max(1.0, _SHORT_BAR * min(part, 1.0))
    return Markup(
        f'<svg role="img" aria-label="{part:.0%}" width="{_SHORT_BAR}" height="10" '
        'style="vertical-align:middle">'
        f'<rect width="{length:.1f}" height="10" fill="{color}"/></svg>'
    )


def picture(series: Sequence[Bars], names: tuple[str, str], line: float, line_label: str) -> Markup:
    """Draw bars side by side, the bars of each series on those of the one before.

    Args:
        series: The numbers; all series have the same length, of at least 1.
        names: The names of the first and of the last bar.
        line: A number at which a dashed line is drawn.
        line_label: The meaning of the line.

    Returns:
        The picture, and a description of it for readers who cannot see it.
    """
    tallest = max(line, *(max(bars.values) for bars in series)) or 1.0
    about = "; ".join(bars.label for bars in series)
    height = _ABOVE + _HEIGHT + _BELOW
    parts = [_opening(about, height)]
    left = 0.0
    for place, bars in enumerate(series):
        parts.append(_legend(bars, left))
        parts += _drawn(bars, place, tallest)
        left += 26 + 6.6 * columns_of(bars.label)
    level = _level(line, tallest)
    parts.append(
        f'<line x1="0" x2="{_WIDTH}" y1="{level:.1f}" y2="{level:.1f}" stroke="currentColor" '
        'stroke-dasharray="5 4"/>'
        f'<text x="{_WIDTH}" y="11" text-anchor="end">– – {escaped(line_label)}</text>'
    )
    parts += _axis(names, len(series[0].values), height - 3)
    return Markup("".join([*parts, "</svg>"]))


def _opening(about: str, height: int) -> str:
    return (
        f'<svg role="img" aria-label="{escaped(about)}" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" style="max-width:100%;height:auto;display:block;'
        'margin:4px 0;overflow:visible" font-size="12" fill="currentColor">'
    )


def _legend(bars: Bars, left: float) -> str:
    return (
        f'<rect x="{left + 1:.1f}" y="2" width="10" height="10" {_style(bars)}/>'
        f'<text x="{left + 16:.1f}" y="11">{escaped(bars.label)}</text>'
    )


def _axis(names: tuple[str, str], length: int, bottom: int) -> Iterable[str]:
    """Yield the names below the first and the last bar, and what the bars between stand for."""
    yield f'<text x="0" y="{bottom}">{escaped(names[0])}</text>'
    if length > 1:
        yield f'<text x="{_WIDTH}" y="{bottom}" text-anchor="end">{escaped(names[1])}</text>'
    size = _group_size(length)
    if size > 1:
        note = f"each bar is the largest of {size:,} neighbors"
        yield f'<text x="{_WIDTH // 2}" y="{bottom}" text-anchor="middle">{note}</text>'


def _drawn(bars: Bars, place: int, tallest: float) -> Iterable[str]:
    """Yield the bars of a series, each narrower than those of the series before."""
    values = _grouped(bars.values)
    step = _WIDTH / len(values)
    width = min(step, _WIDEST_BAR) * (0.86 - 0.26 * place)
    for number, value in enumerate(values):
        top = _level(value, tallest)
        yield (
            f'<rect x="{(number + 0.5) * step - width / 2:.1f}" y="{top:.1f}" '
            f'width="{width:.1f}" height="{_ABOVE + _HEIGHT - top:.1f}" {_style(bars)}/>'
        )


def _style(bars: Bars) -> str:
    if bars.is_outline:
        return f'fill="{bars.color}" fill-opacity="0.25" stroke="{bars.color}"'
    return f'fill="{bars.color}"'


def _level(value: float, tallest: float) -> float:
    """Return the height of a value above the lower edge, as a distance from the upper edge."""
    return _ABOVE + _HEIGHT * (1 - value / tallest)


def _grouped(values: Sequence[float]) -> list[float]:
    """Return at most `_MOST_BARS` values: the largest of each group of neighbors.

    >>> _grouped([1, 3, 2]), len(_grouped(range(1000))), _grouped(range(1000))[-1]
    ([1, 3, 2], 125, 999)
    """
    size = _group_size(len(values))
    return [max(values[start : start + size]) for start in range(0, len(values), size)]


def _group_size(length: int) -> int:
    return -(-length // _MOST_BARS)


def counted(number: int, one: str, more: str = "") -> str:
    """Return a number of things.

    >>> counted(1, "copy", "copies"), counted(1200, "bucket")
    ('1 copy', '1,200 buckets')
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"
