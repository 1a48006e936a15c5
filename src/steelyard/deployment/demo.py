"""The demo: count a skewed stream on this machine, with slow workers.

A stream of files enters; the history of each grouping strategy leaves.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from steelyard.control.history import Slot
from steelyard.datasets import zipf_ranks
from steelyard.deployment.deployed_strategies import (
    CONSISTENT_DELEGATED,
    KEY_GROUPING,
    DeployedStrategy,
)
from steelyard.deployment.emulated_machines import Machines, SlowCount
from steelyard.deployment.strategy_grouping import group_with
from steelyard.spark.streaming.grouped_stream import GroupedStream
from steelyard.validation import require_between, require_whole

DEMO_STRATEGIES = (KEY_GROUPING, CONSISTENT_DELEGATED)
"""The strategies that the demo compares, in the order in which they run."""


@dataclass(frozen=True)
class DemoSettings:
    """A stream and the workers that count it."""

    workers: int = 8
    slow: int = 2
    speed: float = 0.3
    """Speed of a slow worker; the other workers have 1."""
    skew: float = 1.2
    keys: int = 20_000
    messages: int = 300_000
    """Messages in a micro-batch."""
    service: float = 1e-4
    """Service time of a message on a worker of speed 1, in seconds."""
    seed: int = 0

    def __post_init__(self) -> None:
        require_whole("workers", self.workers, least=2, most=64)
        require_whole("slow", self.slow, least=0, most=self.workers)
        require_between("speed", self.speed, above=0, most=1)
        require_whole("messages", self.messages, least=1)

    @property
    def machines(self) -> Machines:
        """One machine for each worker; the last ones are slow."""
        speeds = [1.0] * (self.workers - self.slow) + [self.speed] * self.slow
        return Machines(self.service, speeds)

    @property
    def limit(self) -> float:
        """Total capacity of all workers, in messages per second."""
        return self.machines.limit

    def write(self, folder: Path, batches: int) -> None:
        """Write the stream, one file for each micro-batch."""
        folder.mkdir(parents=True, exist_ok=True)
        for batch in range(batches):
            ranks = zipf_ranks(self.messages, self.skew, self.keys, self.seed * 1000 + batch)
            pages = pa.array(np.char.add("page-", ranks.astype(str)), pa.string())
            pq.write_table(pa.table({"page": pages}), folder / f"{batch:04}.parquet")


@dataclass(frozen=True)
class DemoRun:
    """The result of one grouping strategy."""

    strategy: DeployedStrategy
    setting: DemoSettings
    slots: tuple[Slot, ...]

    @property
    def name(self) -> str:
        """The name of the strategy in tables and figures."""
        return self.strategy.title

    @property
    def settled(self) -> tuple[Slot, ...]:
        """The second half of the slots; a strategy that learns has converged by then."""
        return self.slots[len(self.slots) // 2 :]

    @property
    def throughput(self) -> float:
        """Messages per second."""
        return median(slot.messages / slot.seconds for slot in self.settled)

    @property
    def efficiency(self) -> float:
        """Work done, as a share of the work that all workers could have done in the same time.

        The time is the busy time of the busiest worker.
        """
        return median(s.messages / s.busiest / self.setting.limit for s in self.settled)

    @property
    def imbalance(self) -> float:
        """The longest busy time of a worker over the mean busy time, minus 1."""
        return median(slot.imbalance for slot in self.settled)

    @property
    def p50(self) -> float:
        """Median of the seconds from the start of a micro-batch until a message is counted."""
        return median(slot.p50 or 0.0 for slot in self.settled)

    @property
    def p99(self) -> float:
        """99th percentile of the same latency."""
        return median(slot.p99 or 0.0 for slot in self.settled)

    def copies(self, keys: float) -> float:
        """Return the number of workers that hold a key, on average over `keys` keys."""
        return median(sum(w.keys for w in slot.workers) for slot in self.settled) / keys


def compare(
    spark: SparkSession,
    folder: Path,
    setting: DemoSettings,
    batches: tuple[int, int] = (3, 7),
    watch: Callable[[str, Slot], None] = lambda *_: None,
) -> tuple[list[DemoRun], float]:
    """Run key grouping, then consistent grouping, on the same files.

    Args:
        spark: The session.
        folder: An empty folder for the stream, checkpoints and the control path.
        setting: The stream and the workers.
        batches: The numbers of micro-batches of both strategies.
        watch: Called with the name of the strategy and the slot at the end of each slot.

    Returns:
        Both runs, and the number of different keys in a micro-batch.
    """
    setting.write(folder / "in", max(batches))
    files = spark.read.parquet(str(folder / "in" / "0000.parquet"))
    keys = float(files.distinct().count())
    runs = []
    with _shuffle_partitions(spark, setting.workers):
        for strategy, number in zip(DEMO_STRATEGIES, batches, strict=True):
            name = strategy.title
            stream = spark.readStream.schema(files.schema).option("maxFilesPerTrigger", 1)
            read = stream.parquet(str(_first_files(folder, number, f"files of {name}")))
            # The time of the micro-batch, which is the same in a replay.
            pages = read.withColumn("came", F.current_timestamp())
            grouped = group_with(
                strategy,
                pages,
                "page",
                workers=setting.workers,
                control=folder / "control",
                arrived="came",
            )
            own = folder / f"checkpoint of {name}"
            slots = _run(grouped, setting, own, partial(watch, name))
            runs.append(DemoRun(strategy, setting, slots))
    return runs, keys


def _first_files(folder: Path, number: int, name: str) -> Path:
    """Link the first files of the stream into a folder."""
    made = folder / name
    made.mkdir()
    for file in sorted((folder / "in").iterdir())[:number]:
        os.link(file, made / file.name)
    return made


def _run(
    grouped: GroupedStream,
    setting: DemoSettings,
    checkpoint: Path,
    watch: Callable[[Slot], None],
) -> tuple[Slot, ...]:
    counts = grouped.aggregate(SlowCount(setting.machines))
    writer = counts.writeStream.outputMode("update").format("noop")
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    seen = 0
    try:
        is_over = False
        while not is_over:
            if not query.isActive:
                query.awaitTermination()  # raises the exception of a failed query
                grouped.await_reports(query)
                is_over = True
            for slot in grouped.history()[seen:]:
                watch(slot)
                seen += 1
            time.sleep(0.1)
    finally:
        query.stop()
    return tuple(grouped.history())


@contextmanager
def _shuffle_partitions(spark: SparkSession, number: int) -> Iterator[None]:
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key) or "200"
    spark.conf.set(key, str(number))
    try:
        yield
    finally:
        spark.conf.set(key, before)
