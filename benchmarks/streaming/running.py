"""Shared parts of the measurements: a stream of files, a query over it, and its slots."""

import itertools
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import steelyard as sy
from steelyard.control.history import Slot
from steelyard.datasets import zipf_ranks
from steelyard.deployment.emulated_machines import Machines, SlowCount
from steelyard.spark.session import STATE_IN_ROCKSDB, session
from steelyard.spark.streaming.grouped_stream import GroupedStream

WORKERS, SKEW, KEYS, MESSAGES = 8, 1.2, 20_000, 300_000

Group = Callable[[DataFrame, Path], GroupedStream]
"""A function that groups a stream; it may write to the folder, for example control files."""


def local() -> AbstractContextManager[SparkSession]:
    """Start Spark with a task slot for every worker."""
    more = {"spark.sql.shuffle.partitions": str(WORKERS), "spark.driver.memory": "4g"}
    return session("steelyard benchmarks", f"local[{WORKERS}]", more | STATE_IN_ROCKSDB)


@dataclass(frozen=True)
class Bench:
    """The settings that all measurements share."""

    folder: Path
    seconds: float
    """Seconds of work in a micro-batch."""
    console: Console
    """The console that shows progress."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count, repr=False)

    def fresh(self) -> Path:
        """Return a new folder."""
        made = self.folder / str(next(self._numbers))
        made.mkdir()
        return made

    def stream(self, files: int, *, hot_from: int | None = None) -> Path:
        """Return a folder with a file for each micro-batch.

        Other keys are hot from file number `hot_from` on.
        """
        made = self.fresh()
        for number in range(files):
            turned = hot_from is not None and number >= hot_from
            path = self.folder / f"{'turned' if turned else 'file'}-{number:04}"
            if not path.exists():
                ranks = zipf_ranks(MESSAGES, SKEW, KEYS, number)
                ranks = KEYS - 1 - ranks if turned else ranks
                pages = pa.array(np.char.add("page-", ranks.astype(str)), pa.string())
                pq.write_table(pa.table({"page": pages}), path)
            os.link(path, made / f"{number:04}.parquet")
        return made

    def service(self, speeds: float) -> float:
        """Return the service time with which machines of this total speed are fully busy."""
        return self.seconds * speeds / MESSAGES

    def slots(self, spark: SparkSession, files: Path, group: Group, machines: Machines) -> "Slots":
        """Count a stream on emulated machines, and return its slots."""
        number = len(list(files.iterdir()))
        stream = spark.readStream.schema("page string").option("maxFilesPerTrigger", 1)
        own = self.fresh()
        grouped = group(stream.parquet(str(files)), own)
        counts = grouped.aggregate(SlowCount(machines))
        writer = counts.writeStream.outputMode("update").format("noop")
        writer = writer.option("checkpointLocation", str(own / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        seen = 0
        try:
            while seen < number:
                for slot in grouped.history()[seen:]:
                    seen += 1
                    self.console.print(
                        f"  slot {slot.slot}: {slot.seconds:.1f} s, {len(slot.moves)} moves",
                        style="dim",
                    )
                if not query.isActive and query.exception() is not None:
                    raise RuntimeError(str(query.exception()))
                time.sleep(0.1)
        finally:
            query.stop()
        return Slots(grouped.history())

    def floor(self, spark: SparkSession, group: Group) -> float:
        """Return the seconds of a micro-batch without work: the time of Spark and the exchange."""
        machines = Machines(1e-12, [1.0] * WORKERS)
        return min(slot.seconds for slot in self.slots(spark, self.stream(3), group, machines).all)


@dataclass(frozen=True)
class Slots:
    """The slots of a run."""

    all: list[Slot]

    def shares(self, machines: Machines) -> list[float]:
        """Return the share of the machines' capacity used in each slot, by its duration."""
        return [slot.messages / slot.seconds / machines.limit for slot in self.all]

    def used(self, machines: Machines) -> list[float]:
        """Return the share of capacity used in each slot while the busiest worker is busy.

        Each machine has one worker.
        """
        return [slot.messages / slot.busiest / machines.limit for slot in self.all]


def until(shares: list[float], least: float, run: int = 2) -> int:
    """Return the number of the first slot that begins `run` slots with at least this share.

    >>> until([0.5, 0.95, 0.7, 0.96, 0.97], 0.95)
    4
    """
    for first in range(len(shares) - run + 1):
        if min(shares[first : first + run]) >= least:
            return first + 1
    return len(shares) + 1


def settled(shares: list[float]) -> float:
    """Return the median of the last three shares."""
    return median(shares[-3:])


# The groupings that are compared.


def by_key(stream: DataFrame, folder: Path) -> GroupedStream:
    """Group by the hash of the key, as a plan without counts does."""
    return sy.group_stream(stream, "page", workers=WORKERS, routing=sy.Planner(WORKERS).plan)


def by_shuffling(stream: DataFrame, folder: Path) -> GroupedStream:
    """Send the same number of messages to every worker."""
    return sy.group_stream(stream, "page", workers=WORKERS, routing=sy.schemes.named("sg"))


def by_pulling(tasks: int) -> Group:
    """Run several tasks for each worker; a free task slot takes the next one."""

    def group(stream: DataFrame, folder: Path) -> GroupedStream:
        return sy.group_stream(
            stream,
            "page",
            workers=WORKERS,
            placement=sy.Pull(tasks_per_worker=tasks),
            control=folder / "control",
        )

    return group


def by_delegating(stream: DataFrame, folder: Path) -> GroupedStream:
    """Run delegated workers, whose virtual workers move."""
    return sy.group_stream(
        stream, "page", workers=WORKERS, placement=sy.Delegated(), control=folder / "control"
    )
