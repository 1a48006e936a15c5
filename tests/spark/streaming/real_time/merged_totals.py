"""Aggregates in real-time mode, merged by a batch job and by a second query.

`python -m tests.spark.streaming.real_time.merged_totals FOLDER` writes all totals as JSON.
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
    kafka_and_spark,
    started,
    stream_of,
    topic_of,
)
from tests.waiting import until

BATCHES = 3
AGGREGATORS = (
    sy.Count(),
    sy.Count("odd"),
    sy.Sum("number"),
    sy.Min("odd"),
    sy.Max("value"),
    sy.Mean("odd"),
)


def numbered(messages):
    """Add columns to aggregate; one is null for even numbers."""
    number = F.col("value").cast("long")
    return messages.withColumn("number", number).withColumn("odd", F.when(number % 2 == 1, number))


def expected(messages):
    """Return the aggregates that Spark itself computes."""
    found = (
        numbered(messages)
        .groupBy("key")
        .agg(
            F.count("*"),
            F.count("odd"),
            F.sum("number"),
            F.min("odd"),
            F.max("value"),
            F.avg("odd"),
        )
    )
    return sorted(map(list, found.collect()))


def main(folder):
    """Aggregate in one query, merge in another one and in a batch job."""
    folder = Path(folder)
    with kafka_and_spark(folder) as (servers, spark):
        given, made, merged = (broker.create(servers, name) for name in ("in", "made", "merged"))
        grouped = sy.group_stream(
            numbered(stream_of(spark, servers, given)),
            "key",
            workers=WORKERS,
            placement=sy.RealTime(),
            control=folder / "control",
        )
        partials = grouped.aggregate(*AGGREGATORS)
        kind = partials.schema["partial"].dataType
        text = partials.select("key", F.to_json("partial").alias("value"))

        def parsed(rows):
            return rows.select("key", F.from_json("value", kind).alias("partial"))

        queries = [started(text, servers, made, folder / "checkpoint")]
        of_stream = sy.merge_partials(
            parsed(stream_of(spark, servers, made)), *AGGREGATORS, workers=WORKERS
        )
        text = of_stream.select("key", F.to_json(F.struct("*")).alias("value"))
        with Messages(servers, given, rate=400) as messages:
            until(lambda: len(grouped.history()) >= BATCHES, lambda: check(queries))
        queries.append(started(text, servers, merged, folder / "other checkpoint"))

        def in_batch():
            rows = sy.merge_partials(parsed(topic_of(spark, servers, made)), *AGGREGATORS)
            found = sorted(map(list, rows.collect()))
            return found if sum(row[1] for row in found) >= messages.sent else None

        def in_stream():
            rows = topic_of(spark, servers, merged)
            rows = rows.select("key", F.from_json("value", of_stream.schema).alias("result"))
            newest = rows.groupBy("key").agg(F.max("result").alias("result"))
            fields = [F.col("result")[name] for name in of_stream.columns[1:]]
            found = sorted(map(list, newest.select("key", *fields).collect()))
            return found if sum(row[1] for row in found) >= messages.sent else None

        hot = parsed(topic_of(spark, servers, made)).where("key = 'hot'")
        found = {
            "batch": until(in_batch, lambda: check(queries)),
            "stream": until(in_stream, lambda: check(queries)),
            "truth": expected(topic_of(spark, servers, given)),
            "workers of the hot key": [
                row[0] for row in hot.select("partial.worker").distinct().collect()
            ],
            "history": [asdict(slot) for slot in grouped.history() if slot.messages],
        }
        (folder / "found.json").write_text(json.dumps(found))


def check(queries):
    """Fail if a query has failed."""
    for query in queries:
        assert query.isActive, str(query.exception())[:2000]


if __name__ == "__main__":
    main(sys.argv[1])
