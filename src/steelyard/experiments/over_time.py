"""Panels of queue length, latency and utilization over time, as in the paper."""

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
    """Return the three panels for the runs with the labels `where`."""
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
    """Return an experiment that draws one simulation over time."""
    panels = (
        ("queue_length", "queue length of all workers", "y"),
        ("latency_p99", "p99 latency, s", "y"),
        ("utilization_max", "largest utilization", ""),
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
    """Return the mean of a series over the tenth of the time that ends at the fraction `until`."""
    values = results.over_time(metric, **labels)
    if values.empty:
        return math.nan
    place = values.index / values.index.max()
    return float(values[(place > until - 0.1) & (place <= until)].mean())
