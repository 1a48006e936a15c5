"""Keys as short plain text.

The values of a key enter; one line leaves that contains no control characters of a terminal.
"""

import unicodedata

from steelyard.printable import printable

WIDTH = 60
"""Default width of a key, in columns of a terminal."""

Name = tuple[str | None, ...]
"""The columns of a key as text; None for a null."""


def shown_key(name: Name, width: int = WIDTH) -> str:
    r"""Format a key in one line; escape unprintable characters and cut long keys.

    >>> shown_key(("two\nlines", None))
    'two\\nlines, (null)'
    >>> shown_key(("long" * 30,), width=10)
    'longlongl…'
    >>> shown_key(("",))
    '(empty)'
    """
    return shortened(", ".join(map(_part, name)), width)


def _part(text: str | None) -> str:
    if text is None:
        return "(null)"
    return printable(text[: 4 * WIDTH]) or "(empty)"


def shortened(text: str, width: int) -> str:
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
