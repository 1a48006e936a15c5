"""Native work in real-time mode on workers of which one is slow.

`python -m tests.spark.streaming.real_time.native_work FOLDER` writes the results as JSON. It is a
program of its own because Spark accepts jars only when it starts.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import functions as F

import steelyard as sy
from steelyard.deployment import broker
from tests.spark.streaming.real_time.on_kafka import (
    WORKERS,
    Messages,
    delivered,
    kafka_and_spark,
    started,
    stream_of,
)
from tests.waiting import until

SLOW, BATCHES = 4, 4
"""The service time of worker 0 in milliseconds (1 for the others), and the batches to wait for."""


def slow_work(messages):
    """Sleep at the worker; drop every hundredth message."""
    sleep = f"coalesce(java_method('java.lang.Thread', 'sleep', if(w = 0, {SLOW}L, 1L)), '')"
    return (
        messages.withColumn("w", F.spark_partition_id())
        .where("cast(value AS long) % 100 <> 99")
        .withColumn("done", F.expr(f"concat(value, {sleep})"))
    )


def refusals(stream, folder):
    """Return the sentence with which each bad call is refused."""

    def group(**more):
        settings = {"workers": WORKERS, "control": folder / "refused", **more}
        return sy.group_stream(stream, "key", placement=sy.RealTime(), **settings)

    calls = {
        "map_arrow": lambda: group().map_arrow(lambda table: table, "key string"),
        "map_pandas": lambda: group().map_pandas(lambda rows: rows, "key string"),
        "apply_in_pandas": lambda: group().apply_in_pandas(lambda rows: rows, "key string"),
        "a sketch": lambda: group().aggregate(sy.TopK("value", 2)),
        "no aggregator": lambda: group().aggregate(),
        "dropped columns": lambda: group().transform(lambda rows: rows.select("key")),
        "no control": lambda: group(control=None),
        "a weight": lambda: group(weight="offset"),
        "a plan": lambda: group(routing=sy.Planner(WORKERS).plan),
        "too many buckets": lambda: group(routing=sy.Balance(buckets=20_000)),
        "a window": lambda: group(window=sy.Window("timestamp", "1 hour")),
        "a stream to count": lambda: group().plan_from(stream),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
        except ValueError as error:
            found[name] = str(error)
    return found


def main(folder):
    """Send messages through a real-time query, and note what it delivered and learned."""
    folder = Path(folder)
    with kafka_and_spark(folder) as (servers, spark):
        given, made = broker.create(servers, "in"), broker.create(servers, "out")
        grouped = sy.group_stream(
            stream_of(spark, servers, given),
            "key",
            workers=WORKERS,
            placement=sy.RealTime(),
            control=folder / "control",
        )
        worked = grouped.transform(slow_work)
        results = worked.select(
            F.concat_ws("@", "key", "w").alias("key"), F.col("done").alias("value")
        )
        query = started(results, servers, made, folder / "checkpoint")

        def check():
            assert query.isActive, str(query.exception())[:2000]

        with Messages(servers, given, rate=600) as messages:
            until(lambda: len(grouped.history()) >= BATCHES, check)
        rows = delivered(spark, servers, made, sum(n % 100 != 99 for n in range(messages.sent)))
        found = {
            "sent": messages.sent,
            "rows": rows,
            "columns": worked.columns,
            "history": [asdict(slot) for slot in grouped.history()],
            "refusals": refusals(stream_of(spark, servers, given), folder),
            "plan": grouped.control.newest().to_json(),
        }
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
