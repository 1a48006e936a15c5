"""The setup that several experiments share: the paper's schemes, streams and load."""

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
DECAY = 0.5
"""The decay of plans in the recorded results, larger than the default."""
LOAD = 0.8
"""The load as a fraction of the capacity of the cluster, as in the paper."""
WORKERS = (5, 10, 50, 100)
DAY_SLOTS = 1440
"""The number of slots in a full day: a slot is a minute."""

SCHEMES: dict[str, Scheme] = {
    "KG": KeyGrouping(),
    "PKG": PartialKey(),
    "PoTC": TwoChoices(),
    "CH": BoundedHashing(EPSILON),
    "PoRC": RandomChoices(EPSILON),
    "SG": Shuffle(),
}

PAPER, STEADY, COMPARED = "CG", "CG steady", "CG compared"
"""Consistent grouping with the paper's rules of delegation, with the steady rules, and with the
steady rules that compare workers with the fair load when the load of the cluster is above 90 %."""

RULES: dict[str, Rules] = {
    PAPER: PaperRules(),
    STEADY: SteadyRules(),
    COMPARED: SteadyRules(),
}


def consistent(
    name: str, virtual_workers: int, scheme: Scheme | Plans | None = None
) -> ConsistentGrouping:
    """Return consistent grouping with the rules of this name."""
    compare_above = 0.9 if name == COMPARED else None
    scheme = scheme or RandomChoices(EPSILON)
    return ConsistentGrouping(scheme, virtual_workers, RULES[name], compare_above)


def groupings(virtual_workers: int, *names: str) -> dict[str, Grouping]:
    """Return groupings by name: schemes on workers, or consistent grouping."""
    return {
        name: consistent(name, virtual_workers) if name in RULES else Direct(SCHEMES[name])
        for name in names
    }


def wikipedia(scale: Scale) -> Dataset:
    """Return the Wikipedia stream: a day of page visits."""
    return datasets.named("wp", fraction=scale.fraction)


def zipf(scale: Scale, skew: float = 1.0) -> Dataset:
    """Return the Zipf stream."""
    return datasets.named("zf", skew=skew, fraction=scale.fraction)


def both(scale: Scale) -> tuple[Dataset, Dataset]:
    """Return the Wikipedia stream, which the paper shows, and Zipf 1.0."""
    return wikipedia(scale), zipf(scale)


def constant(messages: int, slots: int, skew: float = 1.0, seed: int = 0) -> Dataset:
    """Return a Zipf stream at a constant rate.

    Args:
        messages: The number of messages.
        slots: The length of the stream in slots of a minute.
        skew: The Zipf exponent.
        seed: The seed of the random numbers.
    """
    stream = datasets.named("zf", skew=skew, seed=seed)
    return replace(stream, messages=messages, seconds=60.0 * slots)


def cluster(
    stream: Dataset, workers: int, fast: int = 0, times: float = 1.0, load: float = LOAD
) -> Cluster:
    """Return a cluster with the capacity for a stream at this load.

    Args:
        stream: The stream.
        workers: The number of workers.
        fast: The number of fast machines.
        times: The speed of a fast machine relative to the others.
        load: The load of the cluster as a fraction of its capacity.
    """
    total = stream.messages / stream.seconds / load
    return Cluster.machines(workers, fast=fast, times=times, total=total)


def slot(stream: Dataset) -> float:
    """Return the length of a slot: a minute of the full day, or longer in a fraction of it.

    A slot of a fraction is long enough for at least 4,000 messages.
    """
    messages = min(22_000_000 / DAY_SLOTS, max(4000, stream.messages / 150))
    return stream.seconds * min(1.0, messages / stream.messages)


def tick(of_slot: float, stream: Dataset) -> float:
    """Return the length of a tick that divides a slot and gives a few hundred points."""
    parts = max(1, round(of_slot / (stream.seconds / 300)))
    return of_slot / parts


def settings(
    slot: float, tick: float | None = None, *, period: float | None = None, sources: int = 1
) -> SimulationSettings:
    """Return the settings of an experiment; overload is allowed.

    Experiments show how queues grow when key grouping overloads a worker.

    Args:
        slot: The length of a slot in seconds.
        tick: The length of a tick in seconds; None for one tick per slot.
        period: The length of a period in seconds; None for no periodic aggregation.
        sources: The number of sources.
    """
    return SimulationSettings(sources, slot, tick, period, overload=True)


def machines(fast: int, times: float) -> str:
    """Return the name of a cluster: {y,z}.

    >>> machines(3, 5)
    '{3,5}'
    """
    return f"{{{fast},{times:g}}}"


def excess_over_epsilon(results: Results, scheme: str, **labels: object) -> float:
    """Return the largest imbalance minus epsilon and minus one message in a bin."""
    rows = results.totals("imbalance", scheme=scheme, **labels)
    messages = results.totals("messages", scheme=scheme, **labels)["value"].to_numpy()
    bins = rows["workers"] * rows["virtual_workers"].clip(lower=1)
    return float((rows["value"] - rows["epsilon"] - bins / messages).max())


def listed(values: pd.Series, form: str = ".2g") -> str:
    """Return an index and its values in one line.

    >>> listed(pd.Series({5: 0.5, 10: 0.25}))
    '5: 0.5, 10: 0.25'
    """
    return ", ".join(
        f"{at}: {'never' if math.isnan(value) else format(value, form)}"
        for at, value in values.items()
    )
