"""Keys, times and numbers of workers as short plain text.

Values from data enter; text leaves that contains no control characters of a terminal.
"""

import unicodedata
from datetime import UTC, datetime

from steelyard.doctor.key_counts import Name
from steelyard.printable import printable

WIDTH = 60
"""Default width of a key, in columns of a terminal."""

_CLOCK = (3e8, 4e9)
"""Numbers in this range are shown as seconds since 1970: from 1979 to 2096."""


def shown_key(name: Name, width: int = WIDTH) -> str:
    r"""Format a key in one line; escape unprintable characters and cut long keys.

    >>> shown_key(("two\nlines", None))
    'two\\nlines, (null)'
    >>> shown_key(("long" * 30,), width=10)
    'longlongl…'
    >>> shown_key(("",))
    '(empty)'
    """
    return _cut(", ".join(map(_part, name)), width)


def shown_time(seconds: float, *, with_hours: bool = False) -> str:
    """Format a time as a date if it is plausible, else as a number.

    >>> shown_time(1.7e9), shown_time(1.7e9, with_hours=True), shown_time(1790.0)
    ('2023-11-14', '2023-11-14 22:13', '1790')
    """
    if not _CLOCK[0] <= seconds <= _CLOCK[1]:
        return f"{seconds:.10g}"
    when = datetime.fromtimestamp(seconds, UTC)
    return when.strftime("%Y-%m-%d %H:%M" if with_hours else "%Y-%m-%d")


def worker_count(workers: int) -> str:
    """Return a number of workers as text.

    >>> worker_count(1), worker_count(2000)
    ('1 worker', '2,000 workers')
    """
    return "1 worker" if workers == 1 else f"{workers:,} workers"


def _part(text: str | None) -> str:
    if text is None:
        return "(null)"
    return printable(text[: 4 * WIDTH]) or "(empty)"


def _cut(text: str, width: int) -> str:
    """Cut a text to a width; some characters are two columns wide."""
    used, kept = 0, []
    for character in text:
        used += columns_of(character)
        kept.append(character)
        if used > width:
            break
    else:
        return text
    while used > width - 1:
        used -= columns_of(kept.pop())
    return "".join(kept) + "…"


def columns_of(text: str) -> int:
    """Return the width of a text on a terminal, in columns.

    >>> columns_of("abc"), columns_of("日本")
    (3, 4)
    """
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
