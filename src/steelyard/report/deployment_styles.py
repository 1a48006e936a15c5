"""Labels and line styles of the strategies and clusters of a deployment experiment."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StrategyStyle:
    """How tables and figures show one grouping strategy."""

    label: str
    color: str
    dashes: Any
    """Line style, as matplotlib names it."""
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """The style as arguments of matplotlib's `plot`."""
        return {"color": self.color, "linestyle": self.dashes, "marker": self.marker}


# Colors that color-blind readers can tell apart, dashes and markers for everybody else.
STYLES = {
    "kg": StrategyStyle("KG, n partitions", "#D55E00", (0, (5, 1.5)), "s"),
    "kg-200": StrategyStyle("KG, 200 partitions", "#E69F00", (0, (3, 1, 1, 1)), "D"),
    "sg": StrategyStyle("SG, round robin", "#666666", (0, (2, 2)), "x"),
    "pkg": StrategyStyle("PKG, two choices", "#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "salting": StrategyStyle("salting by hand", "#56B4E9", (0, (1, 1)), "^"),
    "cg-pull": StrategyStyle("CG, pull", "#009E73", (0, (8, 1)), "P"),
    "cg-delegated": StrategyStyle("CG, delegated", "#0072B2", "solid", "o"),
}
"""By the name of a strategy in results.csv, in the order in which they are shown."""

CLUSTERS = {
    "no": "workers alike",
    "sleep": "a quarter at 30 %",
    "executors": "executors paused",
    "changing": "others become slow",
}
"""Labels of the kinds of clusters, in the order in which they are shown."""
