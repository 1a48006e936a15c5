"""The results of an experiment in long form, and claims about them.

Configurations and their numbers enter; a table with one number per row leaves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from steelyard.experiments.configuration import Configuration, MetricValue

COLUMNS = [
    "experiment",
    "scheme",
    "workers",
    "virtual_workers",
    "sources",
    "epsilon",
    "skew",
    "dataset",
    "seed",
    "time",
    "metric",
    "value",
    "cluster",
]
"""The columns of every table; `cluster` names the cluster, for example {y,z}."""


def as_table(configuration: Configuration, measured: Iterable[MetricValue]) -> pd.DataFrame:
    """Return the numbers of one configuration with its labels and its id."""
    table = pd.DataFrame(list(measured), columns=list(MetricValue._fields))
    for name, value in configuration.labels.items():
        table[name] = value
    table["configuration"] = configuration.id
    return table[[*COLUMNS, "configuration"]]


@dataclass(frozen=True, eq=False)
class Results:
    """The table of one experiment.

    >>> table = pd.DataFrame({"scheme": ["KG", "CG"], "time": float("nan"),
    ...                       "metric": "imbalance", "value": [8.0, 0.01]})
    >>> Results(table).value("imbalance", scheme="CG")
    0.01
    """

    table: pd.DataFrame

    def where(self, **labels: object) -> "Results":
        """Return the rows with these labels; a list accepts any of its values."""
        table = self.table
        for name, wanted in labels.items():
            among = wanted if isinstance(wanted, list | tuple) else [wanted]
            table = table[table[name].isin(among)]
        return Results(table)

    def totals(self, metric: str, **labels: object) -> pd.DataFrame:
        """Return the rows of a metric that describe whole runs."""
        rows = self.where(metric=metric, **labels).table
        return rows[rows["time"].isna()]

    def over_time(self, metric: str, **labels: object) -> pd.Series:
        """Return a metric over time, for the one run with these labels."""
        rows = self.where(metric=metric, **labels).table
        rows = rows[rows["time"].notna()]
        return rows.set_index("time")["value"].sort_index()

    def value(self, metric: str, **labels: object) -> float:
        """Return the mean of a metric over all whole runs with these labels."""
        rows = self.totals(metric, **labels)
        if rows.empty:
            raise KeyError(f"there are no results for the metric {metric!r} with {labels}")
        return float(rows["value"].mean())

    def by(self, column: str, metric: str, **labels: object) -> pd.Series:
        """Return the mean of a metric for each value of a column, in ascending order."""
        rows = self.totals(metric, **labels)
        return rows.groupby(column)["value"].mean().sort_index()


@dataclass(frozen=True)
class Claim:
    """A claim, the measurement, and whether the measurement agrees with the claim."""

    said: str
    """The claim in one sentence."""
    section: str
    """The part of the paper with the claim."""
    measured: str
    """The measured numbers."""
    agrees: bool | None
    """Whether the numbers agree with the claim; None if this run cannot decide."""
    why: str = ""
    """An explanation of the numbers."""
    ours: bool = False
    """Whether the claim is this project's and not the paper's."""
