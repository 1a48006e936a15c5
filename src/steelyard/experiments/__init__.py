"""Every figure of the paper's evaluation, and some of ours: one module per figure.

A name enters; an experiment leaves. `steelyard.spark` runs its configurations as tasks, and
`steelyard.report` draws its results.
"""

from steelyard.experiments import (
    allocation,
    balls_and_bins,
    data_rate,
    delegation_rules,
    drift,
    dynamic,
    epsilon,
    heterogeneous,
    homogeneous,
    large_clusters,
    later_schemes,
    number_of_sources,
    virtual_workers,
)
from steelyard.experiments.configuration import Configuration, MetricValue, run
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results

__all__ = [
    "Claim",
    "Configuration",
    "Experiment",
    "MetricValue",
    "Panel",
    "Results",
    "Scale",
    "named",
    "names",
    "run",
]

_EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        data_rate,
        balls_and_bins,
        epsilon,
        allocation,
        homogeneous,
        heterogeneous,
        number_of_sources,
        virtual_workers,
        dynamic,
        drift,
        later_schemes,
        delegation_rules,
        large_clusters,
    )
}


def names() -> list[str]:
    """Return the names of all experiments, in the order of the paper."""
    return list(_EXPERIMENTS)


def named(name: str) -> Experiment:
    """Return the experiment with this name.

    >>> named("epsilon").title
    'Imbalance and memory over epsilon'
    """
    if name not in _EXPERIMENTS:
        raise ValueError(
            f"no experiment is named {name!r}; the experiments are: "
            f"{', '.join(_EXPERIMENTS)}; all runs all of them"
        )
    return _EXPERIMENTS[name]
