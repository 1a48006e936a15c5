"""An experiment: its configurations, the panels of its figure, and its claims."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steelyard.experiments.configuration import Configuration
from steelyard.experiments.results import Claim, Results
from steelyard.validation import require_between

LEAST_SCALE = 0.001


@dataclass(frozen=True)
class Scale:
    """The fraction of the full size to run, and the folder of real data if there is one."""

    fraction: float = 1.0
    data: Path | None = None

    def __post_init__(self) -> None:
        require_between("scale", self.fraction, least=LEAST_SCALE, most=1)

    @property
    def is_small(self) -> bool:
        """Whether the run omits the largest parts of a grid."""
        return self.fraction < 0.1


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a metric over a column, with a line for each scheme.

    Args:
        metric: The metric on the y axis.
        x: The column on the x axis.
        label: The label of the y axis.
        x_label: The label of the x axis.
        title: The title of the panel.
        kind: The kind of the plot.
        lines: The column with one line for each of its values.
        log: The axes with a logarithmic scale: "x", "y", "xy", or "" for none.
        where: The labels of the rows to plot.
        limits: The limits of the y axis.
    """

    metric: str
    x: str
    label: str
    x_label: str
    title: str = ""
    kind: Literal["lines", "bars", "heat"] = "lines"
    lines: str = "scheme"
    log: str = ""
    where: dict[str, object] = field(default_factory=dict)
    limits: tuple[float, float] | None = None

    @property
    def log_x(self) -> bool:
        """Whether the x axis has a logarithmic scale."""
        return "x" in self.log

    @property
    def log_y(self) -> bool:
        """Whether the y axis, or the colors of a heat map, have a logarithmic scale."""
        return "y" in self.log


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper, or one of ours."""

    name: str
    """The name on the command line."""
    title: str
    """The title in the report."""
    said: str
    """What the paper says about the figure, in our words; for our own figures, their question."""
    configurations: Callable[[Scale], list[Configuration]]
    """Returns the configurations at a scale."""
    panels: Sequence[Panel]
    """The panels of the figure."""
    claims: Callable[[Results], list[Claim]]
    """Compares results with claims."""
    columns: int = 3
    """The number of panels in a row."""
