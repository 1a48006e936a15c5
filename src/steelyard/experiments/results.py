"""Results in long form, and what they say of a claim.

Configurations and their numbers enter; a table leaves, one number a row.
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
"""Of every table; `cluster` tells which machines are faster, as {y,z}."""


def as_table(configuration: Configuration, measured: Iterable[MetricValue]) -> pd.DataFrame:
    """The numbers of one configuration, with its labels and its id."""
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
        """The rows with these labels; a list stands for any of its values."""
        table = self.table
        for name, wanted in labels.items():
            among = wanted if isinstance(wanted, list | tuple) else [wanted]
            table = table[table[name].isin(among)]
        return Results(table)

    def totals(self, metric: str, **labels: object) -> pd.DataFrame:
        """The rows of a metric that are about whole runs."""
        rows = self.where(metric=metric, **labels).table
        return rows[rows["time"].isna()]

    def over_time(self, metric: str, **labels: object) -> pd.Series:
        """A metric by time, of the one run that the labels name."""
        rows = self.where(metric=metric, **labels).table
        rows = rows[rows["time"].notna()]
        return rows.set_index("time")["value"].sort_index()

    def value(self, metric: str, **labels: object) -> float:
        """The mean over all runs that the labels name of a metric about whole runs."""
        rows = self.totals(metric, **labels)
        if rows.empty:
            raise KeyError(f"there is no {metric} for {labels}")
        return float(rows["value"].mean())

    def by(self, column: str, metric: str, **labels: object) -> pd.Series:
        """A metric by the values of a column, rising; the mean where there are several."""
        rows = self.totals(metric, **labels)
        return rows.groupby(column)["value"].mean().sort_index()


@dataclass(frozen=True)
class Claim:
    """What is said, what was measured, and whether that agrees."""

    said: str
    section: str
    measured: str
    agrees: bool | None
    """None where this run cannot tell."""
    why: str = ""
    ours: bool = False
    """Not the paper's claim but this project's."""
