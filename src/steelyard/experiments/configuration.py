"""A configuration of an experiment: a simulation and its measurements.

A configuration enters; numbers leave, each with a name and, in a series, a time. A configuration
contains all its settings, so it can run in any process.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import steelyard
from steelyard.datasets import Dataset
from steelyard.experiments.input_streams import InputStream, hottest_key, opened
from steelyard.schemes import KeyGrouping
from steelyard.simulator import (
    Cluster,
    ConsistentGrouping,
    Direct,
    Grouping,
    Outcome,
    SimulationSettings,
    simulate,
)


class MetricValue(NamedTuple):
    """A measured number; the time is NaN for a number about the whole run."""

    metric: str
    value: float
    time: float = math.nan


Reading = Callable[["Configuration", Outcome], list[MetricValue]]


@dataclass(frozen=True)
class Configuration:
    """A simulation and the labels of its results."""

    experiment: str
    """The name of the experiment."""
    scheme: str
    """The label of the scheme."""
    stream: InputStream
    """The messages."""
    cluster: Cluster = field(default_factory=lambda: Cluster((1.0,)))
    """The workers and their speeds."""
    grouping: Grouping = field(default_factory=lambda: Direct(KeyGrouping()))
    """The rule by which sources choose workers."""
    cluster_name: str = "equal"
    """The label of the cluster."""
    settings: SimulationSettings | None = None
    """The settings of the simulation. None means one slot as long as the stream: there is no
    delegation and no series."""
    measure: Reading | None = None
    """A function that measures more than the totals; it must be picklable."""
    without_simulation: Callable[["Configuration"], list[MetricValue]] | None = None
    """A function to run instead of a simulation."""
    shown: tuple[tuple[str, object], ...] = ()
    """Labels that replace those from the settings."""

    @property
    def id(self) -> str:
        """A hash of the settings and of the code: equal for equal runs by the same code."""
        functions = [f for f in (self.measure, self.without_simulation) if f]
        called = [f"{f.__module__}.{f.__qualname__}" for f in functions]
        parts = (_code(), *called, *map(repr, self._identity()))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _identity(self) -> tuple[object, ...]:
        settings = self.simulation_settings
        return (
            self.experiment,
            self.scheme,
            self.stream,
            self.cluster,
            self.grouping,
            self.cluster_name,
            settings.sources,
            settings.slot if self.settings else None,
            settings.tick,
            settings.period,
            settings.quiet,
            settings.service,
            settings.overload,
            settings.seed,
            self.shown,
        )

    @property
    def simulation_settings(self) -> SimulationSettings:
        """The settings of the simulation."""
        return self.settings or SimulationSettings(
            slot=self.stream.seconds, tick=None, overload=True
        )

    @property
    def title(self) -> str:
        """A readable title: the scheme, the cluster and the stream."""
        return (
            f"{self.scheme} on {self.cluster.workers:,} workers "
            f"({self.cluster_name}), {self.stream.name}"
        )

    @property
    def labels(self) -> dict[str, object]:
        """The columns that identify the results of the configuration."""
        grouping = self.grouping
        virtual = grouping.virtual_workers if isinstance(grouping, ConsistentGrouping) else 0
        return {
            "experiment": self.experiment,
            "scheme": self.scheme,
            "workers": self.cluster.workers,
            "virtual_workers": virtual,
            "sources": self.simulation_settings.sources,
            "epsilon": float(getattr(grouping.scheme, "epsilon", math.nan)),
            "skew": self._skew,
            "dataset": self.stream.name,
            "seed": self.stream.seed,
            "cluster": self.cluster_name,
            **dict(self.shown),
        }

    @property
    def _skew(self) -> float:
        stream = self.stream
        return stream.skew if isinstance(stream, Dataset) and stream.name == "zf" else math.nan

    @property
    def cost(self) -> float:
        """A rough estimate of the run time in seconds, to order and pack tasks."""
        if self.without_simulation is not None:
            return self.stream.messages * 6e-8
        settings = self.simulation_settings
        slots = self.stream.seconds / settings.slot
        pairs = self.cluster.workers * settings.sources
        delegated = isinstance(self.grouping, ConsistentGrouping)
        return self.stream.messages * 1.2e-7 + slots * (pairs if delegated else 1) * 4e-5


@cache
def _code() -> str:
    """Return a hash of all code that results may depend on, without commands and figures."""
    package = Path(steelyard.__path__[0])
    files = (p for p in sorted(package.rglob("*.py")) if p.relative_to(package).parts[0] not in
             ("cli", "dashboard", "report", "spark"))  # fmt: skip
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def run(configuration: Configuration) -> list[MetricValue]:
    """Run a configuration and return its measurements."""
    if configuration.without_simulation is not None:
        return configuration.without_simulation(configuration)
    return measured(configuration, simulated(configuration))


def simulated(configuration: Configuration) -> Outcome:
    """Simulate a configuration."""
    return simulate(
        opened(configuration.stream),
        configuration.cluster,
        configuration.grouping,
        configuration.simulation_settings,
    )


def measured(configuration: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the measurements of a configuration from the outcome of its simulation."""
    numbers = totals(configuration, outcome)
    if configuration.measure is not None:
        numbers += configuration.measure(configuration, outcome)
    return numbers


def totals(configuration: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the metrics of the whole run, which every simulation has."""
    converged = outcome.converged_after()
    named = {
        "messages": float(outcome.messages),
        "imbalance": outcome.imbalance,
        "memory": outcome.memory_cost,
        "probes": outcome.probes / outcome.messages,
        "latency_mean": outcome.mean_latency,
        "latency_p50": outcome.total_latency_quantile(0.5),
        "latency_p99": outcome.total_latency_quantile(0.99),
        "queue_length_max": float(outcome.queue_length.max()),
        "moves": float(outcome.moves.sum()),
        "signals": float(outcome.signals.sum()),
        "hottest_copies": float(outcome.copies_of(hottest_key(configuration.stream))),
        "slots_to_converge": math.nan if converged is None else float(converged),
    }
    if configuration.simulation_settings.period is not None:
        named["aggregation"] = float(outcome.aggregated.sum())
    return [MetricValue(metric, value) for metric, value in named.items()]


def series(_: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return all series over time."""
    times = outcome.times.tolist()
    return [
        MetricValue(metric, float(value), time)
        for metric, values in outcome.series().items()
        for time, value in zip(times, values, strict=True)
        if not math.isnan(value)
    ]


def memory_bounds(configuration: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the paper's bounds of the memory per key, and the share of the hottest key.

    The lower bound is for PoRC, the upper bound for shuffle grouping.
    """
    assert isinstance(configuration.stream, Dataset)
    shape = configuration.stream.shape
    seen = np.flatnonzero(outcome.tally.held.any(axis=1))
    shares = shape.head(seen + 1) / shape.total
    workers = configuration.cluster.workers
    epsilon = float(getattr(configuration.grouping.scheme, "epsilon", 0.0))
    hottest = sum(np.count_nonzero(c.keys == 0) for c in opened(configuration.stream).chunks())
    fewest = np.ceil(shares * workers / (1 + epsilon))
    most = np.minimum(np.ceil(shares * outcome.messages), workers)
    return [
        MetricValue("memory_lower_bound", float(fewest.mean())),
        MetricValue("memory_upper_bound", float(most.mean())),
        MetricValue("p1", hottest / outcome.messages),
    ]
