"""What several experiments share: the paper's schemes, its streams, its load."""

import math
from dataclasses import replace

import pandas as pd

from steelyard import datasets
from steelyard.datasets import Dataset
from steelyard.delegation import PaperRules, Rules, SteadyRules
from steelyard.experiments.experiment import Scale
from steelyard.experiments.results import Results
from steelyard.schemes import (
    BoundedHashing,
    KeyGrouping,
    PartialKey,
    RandomChoices,
    Scheme,
    Shuffle,
    TwoChoices,
)
from steelyard.simulator import (
    Cluster,
    ConsistentGrouping,
    Direct,
    Grouping,
    Plans,
    SimulationSettings,
)

EPSILON = 0.01
LOAD = 0.8
"""Of what the cluster can do, as in the paper."""
WORKERS = (5, 10, 50, 100)
DAY_SLOTS = 1440
"""A slot is a minute of the full day."""

SCHEMES: dict[str, Scheme] = {
    "KG": KeyGrouping(),
    "PKG": PartialKey(),
    "PoTC": TwoChoices(),
    "CH": BoundedHashing(EPSILON),
    "PoRC": RandomChoices(EPSILON),
    "SG": Shuffle(),
}

PAPER, STEADY, COMPARED = "CG", "CG steady", "CG compared"
"""Consistent grouping with the paper's rules of delegation, with ours, and with ours told what
would be fair where the load of the whole cluster is above 90 %."""

RULES: dict[str, Rules] = {
    PAPER: PaperRules(),
    STEADY: SteadyRules(),
    COMPARED: SteadyRules(),
}


def consistent(
    name: str, virtual_workers: int, scheme: Scheme | Plans | None = None
) -> ConsistentGrouping:
    """Consistent grouping by the rules of this name."""
    compare_above = 0.9 if name == COMPARED else None
    scheme = scheme or RandomChoices(EPSILON)
    return ConsistentGrouping(scheme, virtual_workers, RULES[name], compare_above)


def groupings(virtual_workers: int, *names: str) -> dict[str, Grouping]:
    """Groupings by name, direct ones and consistent ones."""
    return {
        name: consistent(name, virtual_workers) if name in RULES else Direct(SCHEMES[name])
        for name in names
    }


def wikipedia(scale: Scale) -> Dataset:
    """The day of page visits."""
    return datasets.named("wp", fraction=scale.fraction)


def zipf(scale: Scale, skew: float = 1.0) -> Dataset:
    """The Zipf stream."""
    return datasets.named("zf", skew=skew, fraction=scale.fraction)


def both(scale: Scale) -> tuple[Dataset, Dataset]:
    """Wikipedia, which the paper shows, and Zipf 1.0."""
    return wikipedia(scale), zipf(scale)


def constant(messages: int, slots: int, skew: float = 1.0, seed: int = 0) -> Dataset:
    """A Zipf stream at a constant rate, of slots of a minute."""
    stream = datasets.named("zf", skew=skew, seed=seed)
    return replace(stream, messages=messages, seconds=60.0 * slots)


def cluster(
    stream: Dataset, workers: int, fast: int = 0, times: float = 1.0, load: float = LOAD
) -> Cluster:
    """A cluster that a stream loads to 80 %, or to another part."""
    total = stream.messages / stream.seconds / load
    return Cluster.machines(workers, fast=fast, times=times, total=total)


def slot(stream: Dataset) -> float:
    """A minute of the full day; in a fraction, the seconds in which enough messages arrive."""
    messages = min(22_000_000 / DAY_SLOTS, max(4000, stream.messages / 150))
    return stream.seconds * min(1.0, messages / stream.messages)


def tick(of_slot: float, stream: Dataset) -> float:
    """A whole part of a slot, so that a series has a few hundred points."""
    parts = max(1, round(of_slot / (stream.seconds / 300)))
    return of_slot / parts


def settings(
    slot: float, tick: float | None = None, *, period: float | None = None, sources: int = 1
) -> SimulationSettings:
    """Settings of an experiment: overload is allowed.

    Experiments show what key grouping does where it is too much for a worker.
    """
    return SimulationSettings(sources, slot, tick, period, overload=True)


def machines(fast: int, times: float) -> str:
    """The name of a cluster: {y,z}.

    >>> machines(3, 5)
    '{3,5}'
    """
    return f"{{{fast},{times:g}}}"


def excess_over_epsilon(results: Results, scheme: str, **labels: object) -> float:
    """The greatest imbalance less epsilon and less one message in a bin."""
    rows = results.totals("imbalance", scheme=scheme, **labels)
    messages = results.totals("messages", scheme=scheme, **labels)["value"].to_numpy()
    bins = rows["workers"] * rows["virtual_workers"].clip(lower=1)
    return float((rows["value"] - rows["epsilon"] - bins / messages).max())


def listed(values: pd.Series, form: str = ".2g") -> str:
    """Values by what they belong to, in one line.

    >>> listed(pd.Series({5: 0.5, 10: 0.25}))
    '5: 0.5, 10: 0.25'
    """
    return ", ".join(
        f"{at}: {'never' if math.isnan(value) else format(value, form)}"
        for at, value in values.items()
    )
