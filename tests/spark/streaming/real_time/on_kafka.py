"""A broker, a session of Spark with many task slots, and messages at a constant rate."""

import os
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from steelyard.deployment import broker
from steelyard.spark.session import CHECKPOINTS_ON_DISK, STATE_IN_ROCKSDB
from tests.waiting import until

WORKERS = 4
TASK_SLOTS = 40
"""Enough for two queries with a task for each partition and worker, and for batch jobs."""


def session():
    """Start Spark with enough task slots for all tasks of a real-time query."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        **broker.connector(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": str(WORKERS),
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "10",
        **CHECKPOINTS_ON_DISK,
        **STATE_IN_ROCKSDB,
    }
    builder = SparkSession.builder.master(f"local[{TASK_SLOTS}]").config(map=settings)
    return builder.getOrCreate()


@contextmanager
def kafka_and_spark(folder):
    """Yield the address of a broker and a session, and stop both at the end."""
    with broker.running_broker(None, Path(folder) / "broker") as servers:
        spark = session()
        try:
            yield servers, spark
        finally:
            for query in spark.streams.active:
                query.stop()
            spark.stop()


def stream_of(spark, servers, topic):
    """Return the messages of a topic from its beginning."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("kafka.fetch.max.wait.ms", "20").option("subscribe", topic)
    return (
        reader.option("startingOffsets", "earliest")
        .load()
        .withColumns({name: F.col(name).cast("string") for name in ("key", "value")})
    )


def topic_of(spark, servers, topic):
    """Return all messages of a topic now, as a batch."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    return (
        reader.option("subscribe", topic)
        .load()
        .withColumns({name: F.col(name).cast("string") for name in ("key", "value")})
    )


def started(frame, servers, topic, checkpoint):
    """Start a real-time query that writes to a topic."""
    writer = frame.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", topic).option("checkpointLocation", str(checkpoint))
    return writer.outputMode("update").trigger(realTime="5 seconds").start()


class Messages:
    """A thread that sends numbered messages; three of ten have the key `hot`."""

    def __init__(self, servers, topic, rate):
        self.sent, self.hot = 0, "hot"
        self._topic, self._rate = topic, rate
        self._producer = broker.new_producer(servers, [], linger=5)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()
        self._producer.flush(60)

    def _run(self):
        begin = time.perf_counter()
        while not self._is_over.wait(0.01):
            while self.sent < (time.perf_counter() - begin) * self._rate:
                number = self.sent
                key = self.hot if number % 10 < 3 else f"key {number * 7919 % 500}"
                self._producer.produce(
                    self._topic, key=key, value=str(number), partition=number % broker.SOURCES
                )
                self.sent += 1
            self._producer.poll(0)


def delivered(spark, servers, topic, messages):
    """Wait until a topic has this many messages, and return their keys and values."""

    def found():
        rows = topic_of(spark, servers, topic).select("key", "value").collect()
        return rows if len(rows) >= messages else None

    return [tuple(row) for row in until(found)]
