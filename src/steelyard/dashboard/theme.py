"""Colors and patterns of the page, for color-blind readers too (palette of Okabe and Ito).

No information depends on color alone: states have a pattern and a word, blocks have a pattern or
an outline.
"""

from dataclasses import dataclass

BLUE, SKY, GREEN = "#0072b2", "#56b4e9", "#009e73"
ORANGE, VERMILLION, PURPLE, GRAY = "#e69f00", "#d55e00", "#cc79a7", "#8a9099"


@dataclass(frozen=True)
class BlockStyle:
    """The color and the pattern of a bar, a block or a line."""

    color: str
    hatch: str = "blank"
    """A hatch pattern of Bokeh."""
    fill: float = 1.0
    """Opacity of the fill."""


STATES = {
    "idle": BlockStyle(SKY, "dot"),
    "normal": BlockStyle(GREEN),
    "busy": BlockStyle(VERMILLION, "right_diagonal_line"),
    "drained": BlockStyle(GRAY, "cross", fill=0.2),
}

INITIAL, MOVED, ARRIVED, LEAVING = "initial owner", "moved earlier", "just moved", "about to move"

BLOCKS = {
    INITIAL: BlockStyle(BLUE),
    MOVED: BlockStyle(PURPLE),
    ARRIVED: BlockStyle(ORANGE, "dot"),
    LEAVING: BlockStyle(VERMILLION, fill=0.0),
}

RUNS = (BlockStyle(VERMILLION), BlockStyle(BLUE))
"""Styles of two runs; the first is drawn dashed."""

INK = "#7c838c"
"""Color of text and lines before the page is light or dark; readable on both."""
