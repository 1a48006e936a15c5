"""What the measurements share: a stream of files, a query over it, and its slots."""

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
"""A way to group a stream; the folder is for control files, or what else it needs."""


def local() -> AbstractContextManager[SparkSession]:
    """Spark with a slot for every worker."""
    more = {"spark.sql.shuffle.partitions": str(WORKERS), "spark.driver.memory": "4g"}
    return session("steelyard benchmarks", f"local[{WORKERS}]", more | STATE_IN_ROCKSDB)


@dataclass(frozen=True)
class Bench:
    """Where files are, how long a micro-batch of work is, and who is told of progress."""

    folder: Path
    seconds: float
    console: Console
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count, repr=False)

    def fresh(self) -> Path:
        """A folder that nobody has used."""
        made = self.folder / str(next(self._numbers))
        made.mkdir()
        return made

    def stream(self, files: int, *, hot_from: int | None = None) -> Path:
        """A folder of files, a micro-batch each; from one on, other keys are the hot ones."""
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
        """Seconds for a message, such that machines of these speeds have their micro-batch."""
        return self.seconds * speeds / MESSAGES

    def slots(self, spark: SparkSession, files: Path, group: Group, machines: Machines) -> "Slots":
        """Count a stream, as machines of some speed would."""
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
        """Seconds of a micro-batch that Spark and the exchange take if the work takes none."""
        machines = Machines(1e-12, [1.0] * WORKERS)
        return min(slot.seconds for slot in self.slots(spark, self.stream(3), group, machines).all)


@dataclass(frozen=True)
class Slots:
    """What was done in every slot."""

    all: list[Slot]

    def shares(self, machines: Machines) -> list[float]:
        """Of all that the machines can do, by the clock: with what Spark itself takes."""
        return [slot.messages / slot.seconds / machines.limit for slot in self.all]

    def used(self, machines: Machines) -> list[float]:
        """Of all that the machines can do while the busiest is busy; each has a worker."""
        return [slot.messages / slot.busiest / machines.limit for slot in self.all]


def until(shares: list[float], least: float, run: int = 2) -> int:
    """The number of the first slot from which on some in a row have at least this share.

    >>> until([0.5, 0.95, 0.7, 0.96, 0.97], 0.95)
    4
    """
    for first in range(len(shares) - run + 1):
        if min(shares[first : first + run]) >= least:
            return first + 1
    return len(shares) + 1


def settled(shares: list[float]) -> float:
    """The median of the last three."""
    return median(shares[-3:])


# The ways to group.


def by_key(stream: DataFrame, folder: Path) -> GroupedStream:
    """Every key where its hash says: what a plan says that has seen nothing."""
    return sy.group_stream(stream, "page", workers=WORKERS, routing=sy.Planner(WORKERS).plan)


def by_shuffling(stream: DataFrame, folder: Path) -> GroupedStream:
    """The same number of messages for everybody."""
    return sy.group_stream(stream, "page", workers=WORKERS, routing=sy.schemes.named("sg"))


def by_pulling(tasks: int) -> Group:
    """Several tasks for each worker: whoever is free takes the next."""

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
    """Workers that stay, whose virtual workers move."""
    return sy.group_stream(
        stream, "page", workers=WORKERS, placement=sy.Delegated(), control=folder / "control"
    )
