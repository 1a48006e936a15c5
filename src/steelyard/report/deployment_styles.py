"""Line styles of strategies, and labels of clusters, in figures of a deployment experiment."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StrategyStyle:
    """How figures draw one grouping strategy."""

    color: str
    dashes: Any
    """Line style of matplotlib."""
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """The style as arguments of matplotlib's `plot`."""
        return {"color": self.color, "linestyle": self.dashes, "marker": self.marker}


# Color-blind readers can distinguish the colors; dashes and markers differ as well.
STYLES = {
    "kg": StrategyStyle("#D55E00", (0, (5, 1.5)), "s"),
    "kg-200": StrategyStyle("#E69F00", (0, (3, 1, 1, 1)), "D"),
    "sg": StrategyStyle("#666666", (0, (2, 2)), "x"),
    "pkg": StrategyStyle("#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "salting": StrategyStyle("#56B4E9", (0, (1, 1)), "^"),
    "cg-pull": StrategyStyle("#009E73", (0, (8, 1)), "P"),
    "cg-delegated": StrategyStyle("#0072B2", "solid", "o"),
}
"""A style for each of `deployment.deployed_strategies.STRATEGIES`, by its short name."""

CLUSTERS = {
    "no": "equal speeds",
    "sleep": "a quarter at 30 % speed",
    "executors": "paused executors",
    "changing": "changing speeds",
}
"""Labels of the kinds of clusters by their names in results.csv, in the order of display."""
