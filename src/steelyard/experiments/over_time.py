"""Queue length, latency and utilisation over time: the paper's three panels."""

import math

from steelyard.experiments.experiment import Panel
from steelyard.experiments.results import Results

_PANELS = (
    ("queue_length_max_min", "queue length, max - min"),
    ("latency_max_min", "latency, max - min, s"),
    ("utilisation_max_min", "utilisation, max - min"),
)


def panels(where: dict[str, object], title: str = "", lines: str = "scheme") -> tuple[Panel, ...]:
    """The three panels of the runs that `where` names."""
    return tuple(
        Panel(
            metric,
            "time",
            label,
            "hours",
            title,
            lines=lines,
            where=where,
            log_y=metric != "utilisation_max_min",
        )
        for metric, label in _PANELS
    )


def growth(results: Results, metric: str, **labels: object) -> float:
    """The mean of a series over the last tenth of the time."""
    values = results.over_time(metric, **labels)
    if values.empty:
        return math.nan
    end = values.index.max()
    return float(values[values.index > 0.9 * end].mean())
