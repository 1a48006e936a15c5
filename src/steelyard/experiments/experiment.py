"""What an experiment is: configurations, how to draw their results, and what to make of them."""

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
    """How much of the full size is run, and where real data may be found."""

    fraction: float = 1.0
    data: Path | None = None

    def __post_init__(self) -> None:
        require_between("scale", self.fraction, least=LEAST_SCALE, most=1)

    @property
    def is_small(self) -> bool:
        """Small runs leave out the largest parts of a grid."""
        return self.fraction < 0.1


@dataclass(frozen=True)
class Panel:
    """One pair of axes: a metric over a column, a line for each scheme."""

    metric: str
    x: str
    label: str
    x_label: str
    title: str = ""
    kind: Literal["lines", "bars", "heat"] = "lines"
    lines: str = "scheme"
    log: str = ""
    """The axes with a logarithmic scale: x, y, both as xy, or none."""
    where: dict[str, object] = field(default_factory=dict)
    limits: tuple[float, float] | None = None

    @property
    def log_x(self) -> bool:
        """Whether the x axis has a logarithmic scale."""
        return "x" in self.log

    @property
    def log_y(self) -> bool:
        """Whether the y axis has a logarithmic scale; of a heat map, its colors."""
        return "y" in self.log


@dataclass(frozen=True)
class Experiment:
    """A figure of the paper, or one of ours."""

    name: str
    title: str
    said: str
    """What the paper says of it, in our words; for ours, what is asked."""
    configurations: Callable[[Scale], list[Configuration]]
    panels: Sequence[Panel]
    claims: Callable[[Results], list[Claim]]
    columns: int = 3
    """Panels beside each other."""
