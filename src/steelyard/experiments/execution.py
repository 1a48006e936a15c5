"""Run the configurations of an experiment on Spark, each once, and keep what came of them.

An experiment and a folder enter; its table leaves. What a folder holds already is not run again,
so that a run that was stopped goes on where it was.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from steelyard.experiments import named
from steelyard.experiments.configuration import Configuration, MetricValue, run
from steelyard.experiments.experiment import Experiment, Scale
from steelyard.experiments.results import COLUMNS, Results, as_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_SECONDS = 2.0
"""A task should last about this long at least: starting one is not free."""

Progress = Callable[[int], None]


class ResultStore:
    """The results of one experiment in a folder: parts while it runs, one table in the end."""

    def __init__(self, folder: Path, name: str) -> None:
        self._table = folder / f"{name}.parquet"
        self._csv = folder / f"{name}.csv"
        self._parts = folder / "parts" / name

    def read(self) -> pd.DataFrame:
        """All that is known, with the ids of the configurations."""
        files = [self._table] if self._table.exists() else []
        files += sorted(self._parts.glob("*.parquet")) if self._parts.exists() else []
        tables = [table for file in files if (table := _read(file)) is not None]
        if not tables:
            return pd.DataFrame(columns=[*COLUMNS, "configuration"])
        return pd.concat(tables, ignore_index=True)

    def add(self, configuration: Configuration, measured: Sequence[MetricValue]) -> None:
        """Keep the results of a configuration; written whole or not at all."""
        self._parts.mkdir(parents=True, exist_ok=True)
        path = self._parts / f"{configuration.id}.parquet"
        unfinished = path.with_suffix(".unfinished")
        as_table(configuration, measured).to_parquet(unfinished, index=False)
        unfinished.replace(path)

    def finish(self, configurations: Sequence[Configuration]) -> pd.DataFrame:
        """Join the parts, and hand out the results of these configurations, in their order.

        Results of other configurations, as of another scale, are kept in the Parquet table.
        """
        known = self.read().drop_duplicates()
        unfinished = self._table.with_suffix(".unfinished")
        known.to_parquet(unfinished, index=False)
        unfinished.replace(self._table)
        for part in self._parts.glob("*"):
            part.unlink()
        order = {configuration.id: i for i, configuration in enumerate(configurations)}
        table = known[known["configuration"].isin(order)]
        place = table["configuration"].map(order)
        table = table.iloc[place.argsort(kind="stable")].reset_index(drop=True)
        table[COLUMNS].to_csv(self._csv, index=False)
        return table

    def has_all(self, configurations: Sequence[Configuration]) -> bool:
        """Whether all of these have been run."""
        return {c.id for c in configurations} <= set(self.read()["configuration"])


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
    stores = {name: ResultStore(folder, name) for name in wanted}
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


def finished(folder: Path, scale: Scale, names: Sequence[str]) -> dict[str, Results]:
    """The results of those experiments that a folder has whole, at this scale."""
    found = {}
    for name in names:
        store = ResultStore(folder, name)
        configurations = named(name).configurations(scale)
        if store.has_all(configurations):
            found[name] = Results(store.finish(configurations))
    return found


def _read(file: Path) -> pd.DataFrame | None:
    """A table; None, and a warning, if the file is damaged: what was in it is run again."""
    try:
        return pd.read_parquet(file)
    except (OSError, pa.ArrowException) as error:
        warnings.warn(f"{file} is damaged and left out: {error}", stacklevel=2)
        return None


def _missing(configurations: Sequence[Configuration], store: ResultStore) -> list[Configuration]:
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
