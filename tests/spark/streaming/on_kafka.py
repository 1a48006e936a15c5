"""A word count from Kafka to Kafka, with a broker that stops for a while.

`python -m tests.spark.streaming.on_kafka PLACEMENT FOLDER` writes the results as JSON. It is a
program of its own because Spark accepts jars only when it starts.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.session import CHECKPOINTS_ON_DISK, STATE_IN_ROCKSDB
from tests.ports import free_port
from tests.spark.streaming.placing import placed
from tests.waiting import until

MESSAGES, WORKERS = 200_000, 4
SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka"


def kafka(*arguments):
    """Run the script, and return its output."""
    ran = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


def start_spark():
    """Start Spark with two task slots and the connector."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.jars": kafka("jars"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": str(WORKERS),
        **CHECKPOINTS_ON_DISK,
        **STATE_IN_ROCKSDB,
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def run_until(condition, start):
    """Run a query until a condition holds; start it again if it failed without the broker."""
    queries = [start()]

    def start_again():
        if not queries[-1].isActive:
            assert len(queries) < 4, str(queries[-1].exception())[:2000]
            queries.append(start())

    try:
        until(condition, start_again)
    finally:
        queries[-1].stop()


def count(spark, servers, placement, folder, interrupt):
    """Count by key into a topic, with an interruption."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", "words").option("startingOffsets", "earliest")
    messages = reader.option("maxOffsetsPerTrigger", MESSAGES // 5).load()
    words = messages.withColumn("word", F.col("key").cast("string"))
    grouped = sy.group_stream(
        words, "word", workers=WORKERS, placement=placed(placement), control=folder / "control"
    )
    counts = grouped.aggregate(sy.Count())
    results = counts.select(
        F.col("word").alias("key"), F.col("count").cast("string").alias("value")
    )
    writer = results.writeStream.outputMode("update").format("kafka")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", "counts")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    interrupted, queries = [], []

    def is_done():
        if grouped.history() and not interrupted:
            interrupted.append(interrupt())
        return read_by(queries) >= MESSAGES

    def start():
        queries.append(writer.start())
        return queries[-1]

    run_until(is_done, start)
    return grouped.history()


def read_by(queries):
    """Return the number of messages with written results, from the progress of the queries."""
    reports = [json.loads(p.json) for query in queries for p in query.recentProgress]
    ends = [progress["sources"][0]["endOffset"] for progress in reports]
    return max((sum(end["words"].values()) for end in ends if end), default=0)


def main(placement, folder):
    """Send messages to a topic, count them into another one, and read it."""
    folder = Path(folder)
    port = str(free_port())
    where = ("--folder", str(folder / "broker"))
    servers = kafka("start", *where, "--port", port)
    spark = None
    try:
        kafka("topic", "words", *where)
        kafka("topic", "counts", *where)
        spark = start_spark()
        rows = spark.range(0, MESSAGES, 1, 4).selectExpr(
            "if(id % 3 = 0, 'the', if(id % 1000 = 1, null, concat('word ', id % 5000))) AS key",
            "string(id) AS value",
        )
        to = rows.write.format("kafka").option("kafka.bootstrap.servers", servers)
        to.option("topic", "words").save()

        def interrupt():
            kafka("stop", *where)
            time.sleep(3)
            kafka("start", *where, "--port", port)

        history = count(spark, servers, placement, folder, interrupt)
        back = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        back = back.option("subscribe", "counts").load()
        newest = back.groupBy(F.col("key").cast("string")).agg(
            F.max(F.col("value").cast("string").cast("long"))
        )
        produced = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        partitions = produced.option("subscribe", "words").load().select("partition").distinct()
        found = {
            "counts": sorted(map(list, newest.collect()), key=str),
            "truth": sorted(map(list, rows.groupBy("key").count().collect()), key=str),
            "partitions": partitions.count(),
            "latencies": [slot.p99 for slot in history],
        }
        (folder / "found.json").write_text(json.dumps(found))
    finally:
        if spark is not None:
            spark.stop()
        kafka("stop", *where)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
