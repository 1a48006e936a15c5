"""Every text is printed as plain text."""

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.table import Table

from steelyard.cli.console import PlainConsole
from steelyard.printable import printable
from tests.hostile import HOSTILE, obeyed_by_a_terminal

TEXTS = st.text(st.characters(), max_size=60) | st.text("[]/\\:$x\x1b\n\x9b\u202e", max_size=20)


@given(TEXTS)
@example(HOSTILE)
@example("\ud800")
def test_a_printable_line_has_no_control_characters(text):
    """The result is one line, and escaping it again does not change it."""
    line = printable(text)
    assert [] == obeyed_by_a_terminal(line + "\n")
    assert "\n" not in line
    assert line == printable(line)
    assert line == "".join(map(printable, text))


@given(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=60))
def test_printable_text_does_not_change(text):
    """Characters of any script are printable."""
    assert text == printable(text)


def shown(*renderables, **settings):
    """Return the text that a console writes to a terminal."""
    console = PlainConsole(
        file=io.StringIO(), force_terminal=True, color_system="truecolor", width=4000, **settings
    )
    console.print(*renderables, soft_wrap=True, highlight=False)
    return console.file.getvalue()


@given(TEXTS)
@example(HOSTILE)
def test_a_console_prints_text_as_text(text):
    """The console interprets neither markup nor emoji codes, and escapes control characters."""
    assert f"{printable(text)}\n" == shown(text)


@pytest.mark.parametrize("place", ["title", "column", "cell", "caption"])
@given(TEXTS)
@example(HOSTILE)
def test_a_table_prints_text_as_text(place, text):
    """The text may be in the title, a header, a cell or the caption."""
    table = Table(title_style="", caption_style="", header_style="")
    table.title, table.caption = (text if place == name else None for name in ("title", "caption"))
    table.add_column(text if place == "column" else "a column", min_width=400)
    table.add_row(text if place == "cell" else "a cell")
    output = shown(table)
    assert [] == obeyed_by_a_terminal(output)
    assert printable(text).strip() in output
