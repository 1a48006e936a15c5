"""Run the configurations of an experiment on Spark, each once, and keep what came of them.

An experiment and a folder enter; its table leaves. What a folder holds already is not run again,
so that a run that was stopped goes on where it was.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from steelyard.experiments.configuration import Configuration, Measured, run
from steelyard.experiments.experiment import Experiment, Scale
from steelyard.experiments.results import COLUMNS, Results, as_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_SECONDS = 2.0
"""A task should last about this long at least: starting one is not free."""

Progress = Callable[[int], None]


class Store:
    """The results of one experiment in a folder: parts while it runs, one table in the end."""

    def __init__(self, folder: Path, name: str) -> None:
        self._table = folder / f"{name}.parquet"
        self._csv = folder / f"{name}.csv"
        self._parts = folder / "parts" / name

    def read(self) -> pd.DataFrame:
        """All that is known, with the ids of the configurations."""
        files = [self._table] if self._table.exists() else []
        files += sorted(self._parts.glob("*.parquet")) if self._parts.exists() else []
        tables = [pd.read_parquet(file) for file in files]
        if not tables:
            return pd.DataFrame(columns=[*COLUMNS, "configuration"])
        return pd.concat(tables, ignore_index=True)

    def add(self, configuration: Configuration, measured: Sequence[Measured]) -> None:
        """Keep the results of a configuration; written whole or not at all."""
        self._parts.mkdir(parents=True, exist_ok=True)
        path = self._parts / f"{configuration.id}.parquet"
        unfinished = path.with_suffix(".unfinished")
        as_table(configuration, measured).to_parquet(unfinished, index=False)
        unfinished.replace(path)

    def finish(self, configurations: Sequence[Configuration]) -> pd.DataFrame:
        """Join the parts: the results of these configurations, in their order, and no others."""
        order = {configuration.id: i for i, configuration in enumerate(configurations)}
        table = self.read().drop_duplicates()
        table = table[table["configuration"].isin(order)]
        place = table["configuration"].map(order)
        table = table.iloc[place.argsort(kind="stable")].reset_index(drop=True)
        unfinished = self._table.with_suffix(".unfinished")
        table.to_parquet(unfinished, index=False)
        unfinished.replace(self._table)
        table[COLUMNS].to_csv(self._csv, index=False)
        for part in self._parts.glob("*"):
            part.unlink()
        return table


def reproduce(
    spark: "SparkSession",
    experiments: Sequence[Experiment],
    folder: Path,
    scale: Scale,
    progress: Progress = lambda done: None,
) -> dict[str, Results]:
    """Run what is not in the folder yet; `progress` is told of every configuration done."""
    from steelyard.spark.session import parallelism
    from steelyard.spark.tasks import run_tasks

    folder.mkdir(parents=True, exist_ok=True)
    wanted = {e.name: e.configurations(scale) for e in experiments}
    stores = {name: Store(folder, name) for name in wanted}
    missing = [c for name in wanted for c in _missing(wanted[name], stores[name])]
    progress(sum(map(len, wanted.values())) - len(missing))
    at_once = parallelism(spark)
    for done in run_tasks(spark, packed(missing), run, at_once):
        for configuration, measured in done:
            stores[configuration.experiment].add(configuration, measured)
            progress(1)
    return {
        name: Results(stores[name].finish(configurations))
        for name, configurations in wanted.items()
    }


def _missing(configurations: Sequence[Configuration], store: Store) -> list[Configuration]:
    known = set(store.read()["configuration"])
    return [c for c in configurations if c.id not in known]


def packed(configurations: Sequence[Configuration]) -> list[list[Configuration]]:
    """Tasks of a few seconds at least, those on the same stream together, the longest first."""
    tasks: list[list[Configuration]] = []
    long = [c for c in configurations if c.cost >= _LEAST_SECONDS]
    tasks += [[c] for c in long]
    task: list[Configuration] = []
    for configuration in configurations:
        if configuration.cost >= _LEAST_SECONDS:
            continue
        task.append(configuration)
        if sum(c.cost for c in task) >= _LEAST_SECONDS:
            tasks.append(task)
            task = []
    if task:
        tasks.append(task)
    return sorted(tasks, key=lambda task: -sum(c.cost for c in task))
