"""Colors and patterns: the same for whoever sees red and green alike (after Okabe and Ito).

Colors alone tell nothing: states have a pattern and a word, blocks a pattern or an outline.
"""

from dataclasses import dataclass

BLUE, SKY, GREEN = "#0072b2", "#56b4e9", "#009e73"
ORANGE, VERMILLION, PURPLE, GRAY = "#e69f00", "#d55e00", "#cc79a7", "#8a9099"


@dataclass(frozen=True)
class Look:
    """How something is drawn."""

    color: str
    hatch: str = "blank"
    """A pattern of Bokeh's."""
    fill: float = 1.0
    """How opaque it is."""


STATES = {
    "idle": Look(SKY, "dot"),
    "normal": Look(GREEN),
    "busy": Look(VERMILLION, "right_diagonal_line"),
    "drained": Look(GRAY, "cross", fill=0.2),
}

OWN, GUEST, CAME, LEAVES = "at home", "from elsewhere", "just came", "leaves now"

BLOCKS = {
    OWN: Look(BLUE),
    GUEST: Look(PURPLE),
    CAME: Look(ORANGE, "dot"),
    LEAVES: Look(VERMILLION, fill=0.0),
}

RUNS = (Look(VERMILLION), Look(BLUE))
"""Of two runs side by side; the first is drawn dashed."""

INK = "#7c838c"
"""Of text and lines before the page knows whether it is light or dark; readable on both."""
