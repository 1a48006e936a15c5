"""Run one grouping strategy on one cluster; words of a topic enter, slots leave."""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from steelyard.control.history import Slot
from steelyard.deployment.broker import ConstantRateProducer, Topic
from steelyard.deployment.deployed_strategies import DeployedStrategy
from steelyard.deployment.emulated_machines import Machines, SlowCount
from steelyard.deployment.grid_settings import SOURCES
from steelyard.deployment.strategy_grouping import group_with
from steelyard.spark.streaming.grouped_stream import GroupedStream

Watch = Callable[[Slot], None]

_STARTING = 300.0
"""Seconds in which the first slot must end."""


@dataclass(frozen=True)
class MeasuredCluster:
    """A Spark session whose workers run on emulated machines."""

    spark: SparkSession = field(repr=False)
    workers: int
    folder: Path
    """Folder for checkpoints."""
    watch: Watch = lambda _: None

    def saturate(
        self,
        strategy: DeployedStrategy,
        machines: Machines,
        topic: Topic,
        messages: int,
        batches: int,
        control: Path,
    ) -> list[Slot]:
        """Run micro-batches back to back, and return their slots.

        Args:
            strategy: The grouping strategy.
            machines: The machines of the workers.
            topic: The topic with the words.
            messages: Messages in a micro-batch.
            batches: Number of micro-batches.
            control: The control path, for a strategy that learns.
        """
        each = max(SOURCES, messages // SOURCES * SOURCES)
        words = self._words(
            topic.servers,
            topic.name,
            startingOffsets=json.dumps(topic.last(each * batches)),
            maxOffsetsPerTrigger=str(each),
        )
        grouped = self._grouped(strategy, words, control)
        query = self._start(grouped, machines, available_now=True)
        self._follow(grouped, query, lambda: not query.isActive)
        query.awaitTermination()  # raises the exception of a failed query
        return list(grouped.history())

    def offer(
        self,
        strategy: DeployedStrategy,
        machines: Machines,
        servers: str,
        words: pa.Array,
        rate: float,
        seconds: tuple[float, float],
        control: Path,
    ) -> list[Slot]:
        """Offer words at a constant rate, and return the slots after the query has settled.

        Args:
            strategy: The grouping strategy.
            machines: The machines of the workers.
            servers: The Kafka servers.
            words: The words to send, again and again.
            rate: Messages per second.
            seconds: The time to settle, which starts at the end of the first slot, and the time to
                measure. Measuring takes up to twice as long if it has fewer than three slots.
            control: The control path, for a strategy that learns.
        """
        settle, measure = seconds
        with ConstantRateProducer(servers, words, rate) as producer:
            stream = self._words(servers, producer.topic, startingOffsets="latest")
            grouped = self._grouped(strategy, stream, control)
            query = self._start(grouped, machines, available_now=False)
            deadline = time.time() + _STARTING

            def settled() -> list[Slot]:
                slots = grouped.history()
                return [s for s in slots if s.time > slots[0].time + settle]

            def is_over() -> bool:
                slots = grouped.history()
                if not slots or not query.isActive:
                    return not query.isActive or time.time() > deadline
                late = (time.time() - slots[0].time - settle) / measure
                return late > 2 or (late > 1 and len(settled()) >= 3)

            self._follow(grouped, query, is_over)
            if not query.isActive and query.exception() is not None:
                raise RuntimeError(str(query.exception()))
            query.stop()
        if producer.lost:
            raise RuntimeError(f"{servers} did not accept all messages: {producer.lost[0]}")
        found = settled()
        if not found:
            raise RuntimeError(f"{strategy.name}: no slot ended in time to be measured")
        return found

    def _grouped(
        self, strategy: DeployedStrategy, words: DataFrame, control: Path
    ) -> GroupedStream:
        return group_with(strategy, words, "word", workers=self.workers, control=control)

    def _words(self, servers: str, topic: str, **options: str) -> DataFrame:
        reader = self.spark.readStream.format("kafka").option("subscribe", topic)
        reader = reader.option("kafka.bootstrap.servers", servers).options(**options)
        word = F.col("key").cast("string").alias("word")
        return reader.load().select(word, "topic", "partition", "offset", "timestamp")

    def _start(
        self, grouped: GroupedStream, machines: Machines, *, available_now: bool
    ) -> StreamingQuery:
        counts = grouped.aggregate(SlowCount(machines))
        writer = counts.writeStream.outputMode("update").format("noop")
        writer = writer.option("checkpointLocation", str(self.folder / uuid.uuid4().hex))
        if available_now:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    def _follow(
        self, grouped: GroupedStream, query: StreamingQuery, is_over: Callable[[], bool]
    ) -> None:
        """Pass every slot to `watch` until `is_over` returns true."""
        seen = 0
        while True:
            over = is_over()
            if over:
                grouped.await_reports(query)
            for slot in grouped.history()[seen:]:
                self.watch(slot)
                seen += 1
            if over:
                return
            time.sleep(0.1)
