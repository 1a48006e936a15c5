"""Run a real-time query from Kafka to Kafka, and measure how long every message takes."""

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

import steelyard as sy
from steelyard.control.history import Slot
from steelyard.deployment import broker
from steelyard.deployment.grid_settings import SOURCES
from steelyard.spark.session import CHECKPOINTS_ON_DISK

SERVICE = 5
"""The service time of a message, in milliseconds."""
SPEED = 0.3
"""The speed of a slow worker."""
HOT = 0.3
"""The part of the messages that have the hot key."""

Group = Callable[[DataFrame, int, Path], tuple[DataFrame, Callable[[], list[Slot]]]]
"""Sends messages to workers, and returns them with a column `done`, and the history."""


@dataclass(frozen=True)
class Load:
    """The messages of a run, and its workers."""

    workers: int
    rate: float
    """Messages per second."""
    seconds: float
    slow: int = 0
    """The number of slow workers."""
    is_skewed: bool = True

    def key(self, number: int) -> str:
        """Return the key of a message."""
        if self.is_skewed and (number * 7 % 100) < 100 * HOT:
            return "hot"
        return f"key {number * 7919 % 5003}"

    @property
    def capacity(self) -> float:
        """The messages per second that all workers together can process."""
        return (self.workers - self.slow + SPEED * self.slow) * 1000 / SERVICE

    @property
    def limit_by_key(self) -> float:
        """The messages per second of the worker with the hot key, if it is not a slow one."""
        return 1000 / SERVICE / (HOT + (1 - HOT) / self.workers)


@dataclass(frozen=True)
class Run:
    """The latencies of the messages of a run, in seconds, in the order of their arrival."""

    sent: int
    arrived: NDArray[np.float64]
    latencies: NDArray[np.float64]
    slots: list[Slot]

    def quantile(self, quantile: float, after: float = 0.0) -> float:
        """Return a quantile of the messages that were sent some seconds after the first one.

        A message that was not delivered counts as infinitely late.
        """
        is_late = self.arrived >= self.arrived[0] + after
        missing = np.full(self.sent - self.latencies.size, np.inf)
        found = np.append(self.latencies[is_late], missing)
        return float(np.quantile(found, quantile, method="higher"))


@dataclass(frozen=True)
class Bench:
    """A broker, a session, and a folder for checkpoints and control paths."""

    servers: str
    spark: SparkSession
    folder: Path
    console: Console

    def run(self, load: Load, group: Group, warm_up: float = 20.0) -> Run:
        """Send messages for `warm_up` seconds and for those of the load; measure all of them."""
        given = self.topic("given")
        query, made, history = self.start(given, load, group)
        try:
            with Messages(self.servers, [given], load) as messages:
                end = time.monotonic() + warm_up + load.seconds
                while time.monotonic() < end:
                    time.sleep(1)
                    if not query.isActive:
                        raise RuntimeError(str(query.exception()))
            self._wait(made, messages.sent)
        finally:
            query.stop()
        arrived, latencies = self._latencies(made)
        return Run(messages.sent, arrived, latencies, history())

    def topic(self, name: str) -> str:
        """Create a topic, and return its name."""
        return broker.create(self.servers, name)

    def start(
        self, given: str, load: Load, group: Group
    ) -> tuple[StreamingQuery, str, Callable[[], list[Slot]]]:
        """Start a query; return it, the topic of its results, and its history."""
        made, folder = self.topic("made"), self.folder / uuid.uuid4().hex
        folder.mkdir()
        there, history = group(self._stream(given), load.workers, folder)
        value = F.concat_ws(" ", F.unix_millis("timestamp"), "done").alias("value")
        writer = there.select("key", value).writeStream.format("kafka").option("topic", made)
        writer = writer.option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        trigger = {"realTime": "5 seconds"}  # unknown to older versions of PySpark
        query = writer.outputMode("update").trigger(**trigger).start()
        return query, made, history

    def _stream(self, topic: str) -> DataFrame:
        reader = self.spark.readStream.format("kafka").option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("kafka.fetch.max.wait.ms", "20")
        return reader.option("startingOffsets", "earliest").load()

    def _messages(self, topic: str) -> DataFrame:
        reader = self.spark.read.format("kafka").option("subscribe", topic)
        return reader.option("kafka.bootstrap.servers", self.servers).load()

    def _wait(self, topic: str, messages: int, most: float = 30.0) -> None:
        """Wait for late messages; those that are still missing count as infinitely late."""
        end = time.monotonic() + most
        while time.monotonic() < end and self._messages(topic).count() < messages:
            time.sleep(1)

    def _latencies(self, topic: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sent = F.split(F.col("value").cast("string"), " ")[0].cast("long")
        rows = self._messages(topic).select(
            sent.alias("sent"), F.unix_millis("timestamp").alias("at")
        )
        table = rows.orderBy("sent").toArrow()
        arrived, left = (
            table.column(name).to_numpy().astype(float) / 1000 for name in table.column_names
        )
        return arrived, left - arrived


def work(slow: int) -> Column:
    """Sleep at the worker, whose number is that of its partition."""
    each = f"if(spark_partition_id() < {slow}, {round(SERVICE / SPEED)}L, {SERVICE}L)"
    return F.expr(f"coalesce(java_method('java.lang.Thread', 'sleep', {each}), 'done')").alias(
        "done"
    )


def by_key(slow: int) -> Group:
    """Group by Spark's own hash of the key."""

    def group(
        stream: DataFrame, workers: int, _: Path
    ) -> tuple[DataFrame, Callable[[], list[Slot]]]:
        there = stream.repartition(workers, "key")
        return there.select("key", "timestamp", work(slow)), list

    return group


def balanced(slow: int) -> Group:
    """Group by consistent grouping."""

    def group(
        stream: DataFrame, workers: int, folder: Path
    ) -> tuple[DataFrame, Callable[[], list[Slot]]]:
        grouped = sy.group_stream(
            stream, "key", workers=workers, placement=sy.RealTime(), control=folder / "control"
        )
        return grouped.select("key", "timestamp", work(slow)), grouped.history

    return group


@contextmanager
def local(folder: Path, console: Console, slots: int = 48) -> Iterator[Bench]:
    """Start a broker and Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings: dict[str, bool | float | int | str | None] = {
        **broker.connector(),
        **CHECKPOINTS_ON_DISK,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.log.level": "OFF",
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "10",
    }
    with broker.running_broker(None, folder / "broker") as servers:
        builder = SparkSession.builder.master(f"local[{slots}]").config(map=settings)
        spark = builder.getOrCreate()
        try:
            yield Bench(servers, spark, folder, console)
        finally:
            spark.stop()


class Messages:
    """A thread that sends the same messages to some topics at a constant rate."""

    def __init__(self, servers: str, topics: Sequence[str], load: Load) -> None:
        self.sent = 0
        self._topics, self._load = topics, load
        self._producer = broker.new_producer(servers, [], linger=1)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.flush(60)

    def _run(self) -> None:
        begin = time.perf_counter()
        while not self._is_over.wait(0.005):
            while self.sent < (time.perf_counter() - begin) * self._load.rate:
                partition = self.sent % SOURCES
                key = self._load.key(self.sent)
                for topic in self._topics:
                    self._producer.produce(topic, key=key, partition=partition)
                self.sent += 1
            self._producer.poll(0)
