"""Run the configurations of an experiment on Spark, each once, and keep their results.

An experiment and a folder enter; its table leaves. Configurations with results in the folder are
not run again, so a run that was stopped can continue.
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
"""The shortest time that a task should take, because starting a task costs time."""

Progress = Callable[[int], None]


class ResultStore:
    """The results of one experiment in a folder: parts while it runs, one table at the end."""

    def __init__(self, folder: Path, name: str) -> None:
        self._table = folder / f"{name}.parquet"
        self._csv = folder / f"{name}.csv"
        self._parts = folder / "parts" / name

    def read(self) -> pd.DataFrame:
        """Return all results in the folder, with the ids of their configurations."""
        files = [self._table] if self._table.exists() else []
        files += sorted(self._parts.glob("*.parquet")) if self._parts.exists() else []
        tables = [table for file in files if (table := _read(file)) is not None]
        if not tables:
            return pd.DataFrame(columns=[*COLUMNS, "configuration"])
        return pd.concat(tables, ignore_index=True)

    def add(self, configuration: Configuration, measured: Sequence[MetricValue]) -> None:
        """Write the results of a configuration atomically."""
        self._parts.mkdir(parents=True, exist_ok=True)
        path = self._parts / f"{configuration.id}.parquet"
        unfinished = path.with_suffix(".unfinished")
        as_table(configuration, measured).to_parquet(unfinished, index=False)
        unfinished.replace(path)

    def finish(self, configurations: Sequence[Configuration]) -> pd.DataFrame:
        """Join the parts, and return the results of these configurations in their order.

        The Parquet table keeps the results of other configurations, such as those of another
        scale.
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
        """Return whether the folder has results of all these configurations."""
        return {c.id for c in configurations} <= set(self.read()["configuration"])


def reproduce(
    spark: "SparkSession",
    experiments: Sequence[Experiment],
    folder: Path,
    scale: Scale,
    progress: Progress = lambda done: None,
) -> dict[str, Results]:
    """Run the configurations without results in the folder; return the results of all.

    Args:
        spark: The session that runs the configurations.
        experiments: The experiments to run.
        folder: The folder of the results.
        scale: The fraction of the full size.
        progress: Called with a number of configurations when they are finished.

    Returns:
        The results by the name of the experiment.
    """
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
    """Return the results of the experiments that are complete in a folder at this scale."""
    found = {}
    for name in names:
        store = ResultStore(folder, name)
        configurations = named(name).configurations(scale)
        if store.has_all(configurations):
            found[name] = Results(store.finish(configurations))
    return found


def _read(file: Path) -> pd.DataFrame | None:
    """Read a table; return None and warn if the file is damaged."""
    try:
        return pd.read_parquet(file)
    except (OSError, pa.ArrowException) as error:
        warnings.warn(f"{file} is damaged and ignored: {error}", stacklevel=2)
        return None


def _missing(configurations: Sequence[Configuration], store: ResultStore) -> list[Configuration]:
    known = set(store.read()["configuration"])
    return [c for c in configurations if c.id not in known]


def packed(configurations: Sequence[Configuration]) -> list[list[Configuration]]:
    """Return tasks of at least a few seconds, the longest first.

    Consecutive short configurations, which usually have the same stream, share a task.
    """
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
