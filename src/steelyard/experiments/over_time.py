"""Queue length, latency and utilization over time: the paper's three panels."""

import math

from steelyard.experiments.configuration import Configuration
from steelyard.experiments.experiment import Experiment, Panel
from steelyard.experiments.results import Results

_PANELS = (
    ("queue_length_max_min", "queue length, max - min"),
    ("latency_max_min", "latency, max - min, s"),
    ("utilization_max_min", "utilization, max - min"),
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
            log="" if metric == "utilization_max_min" else "y",
        )
        for metric, label in _PANELS
    )


def figure_of(configuration: Configuration) -> Experiment:
    """How to draw one simulation: what the paper plots over time, and more."""
    panels = (
        ("queue_length", "messages waiting", "y"),
        ("latency_p99", "p99 latency, s", "y"),
        ("utilization_max", "utilization of the busiest", ""),
        ("queue_length_max_min", "queue length, max - min", "y"),
        ("latency_max_min", "latency, max - min, s", "y"),
        ("utilization_max_min", "utilization, max - min", ""),
    )
    return Experiment(
        name="simulate",
        title=configuration.title,
        said="",
        configurations=lambda _: [configuration],
        panels=tuple(
            Panel(metric, "time", label, "hours", log=log) for metric, label, log in panels
        ),
        claims=lambda _: [],
    )


def growth(results: Results, metric: str, until: float = 1.0, **labels: object) -> float:
    """The mean of a series over a tenth of the time: the last, or the one until a part of it."""
    values = results.over_time(metric, **labels)
    if values.empty:
        return math.nan
    place = values.index / values.index.max()
    return float(values[(place > until - 0.1) & (place <= until)].mean())
