"""Run operations on a small cluster of real executors, and optionally kill one of them.

`python -m tests.spark.on_cluster NAMES kill|calm FOLDER` writes the results of operations as JSON.
A name is that of an operation, or of a step before it and the operation: `duplicates.join`. This is
a separate program because a process can have only one Spark cluster.
"""

import json
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.session import CHECKPOINTS_ON_DISK, RETRY_LOST_TASKS_ONLY
from steelyard.spark.versions.partitions import to_partitions

ROWS, PARTS, LARGE, COPIES, OTHERS = 6000, 6, 1_200_000, 5, 400


def maybe_kill(folder):
    """Sleep; once two tasks are done, kill the executor of one task."""
    time.sleep(0.3)
    if folder is None or len(list(Path(folder, "done").iterdir())) < 2:
        return
    try:
        Path(folder, "killed").touch(exist_ok=False)
    except FileExistsError:
        return
    kill_my_executor()


def kill_my_executor():
    """Kill the executor of this Python process."""
    daemon = os.getppid()  # the parent is Spark's daemon, and its parent is the executor
    status = Path(f"/proc/{daemon}/status").read_text()
    executor = int(status.split("PPid:")[1].split()[0])
    os.kill(executor, 9)
    time.sleep(60)


def done(folder):
    """Record that a task is done."""
    if folder is not None:
        Path(folder, "done", uuid.uuid4().hex).touch()


def slow(folder):
    """Return a slow stage that does not change rows."""

    def run(batches):
        maybe_kill(folder)
        yield from batches
        done(folder)

    return run


class SlowSum(sy.Sum):
    """A slow sum."""

    def __init__(self, column, folder):
        super().__init__(column)
        self.folder = folder

    def add(self, batch, groups):
        """Add rows slowly."""
        maybe_kill(self.folder)
        added = super().add(batch, groups)
        done(self.folder)
        return added


def rows_of(frame):
    """Return all rows, sorted."""
    return sorted(map(list, frame.collect()))


def repartition(frame, files, folder):
    """Run a slow stage after balanced partitions."""
    return rows_of(sy.repartition(frame, PARTS, "page").mapInArrow(slow(folder), frame.schema))


def planned(frame, files, folder):
    """Run a slow stage after a repartition by a given plan."""
    plan = sy.plan(frame, "page", workers=PARTS)
    balanced = sy.repartition(frame, PARTS, "page", routing=plan)
    return rows_of(balanced.mapInArrow(slow(folder), frame.schema))


def map_arrow(frame, files, folder):
    """Run a slow function on balanced workers."""
    return rows_of(_slow_map(frame, folder))


def map_arrow_on_files(frame, files, folder):
    """Run a slow function on rows that are planned during the read."""
    return rows_of(_slow_map(files, folder))


def map_arrow_on_large_files(frame, files, folder):
    """Return the number of ids, the rows of the most frequent id, and the sum of the ids.

    Each file has several blocks.
    """
    many = frame.sparkSession.range(0, LARGE, 1, 2).selectExpr("id % 2 * (id % 50) AS page", "id")
    path = tempfile.mkdtemp()
    many.write.mode("overwrite").parquet(path)
    ids = _slow_map(frame.sparkSession.read.parquet(path), folder).groupBy("id").count()
    return rows_of(ids.agg(F.count("*"), F.max("count"), F.sum("id")))


def scheme(frame, files, folder):
    """Route message by message, like the paper's sources."""
    return rows_of(_slow_map(files, folder, routing=sy.schemes.named("porc")))


def whole_light_keys(frame, files, folder):
    """Split only hot keys."""
    return rows_of(_slow_map(frame, folder, whole_light_keys=True))


def balancer(frame, files, folder):
    """Balance a second batch, which Spark counts while it moves the rows."""
    balancer = sy.Balancer("page", workers=PARTS)
    balancer.repartition(frame).count()
    return rows_of(balancer.repartition(frame).mapInArrow(slow(folder), frame.schema))


def by_position(frame, files, folder):
    """Route rows by their position, which is wrong: a task retry may have another order."""

    def deal(batches):
        number = 0
        for batch in batches:
            turns = [(number + i) % PARTS for i in range(batch.num_rows)]
            number += batch.num_rows
            yield batch.append_column("turn", pa.array(turns, pa.int32()))

    dealt = frame.mapInArrow(deal, "page string, id long, turn int")
    dealt = to_partitions(dealt, PARTS, F.col("turn")).drop("turn")
    return rows_of(dealt.mapInArrow(slow(folder), frame.schema))


def _slow_map(frame, folder, **how):
    def function(table):
        maybe_kill(folder)
        done(folder)
        return table

    group = sy.group_stream if frame.isStreaming else sy.group_by
    return group(frame, "page", workers=PARTS, **how).map_arrow(function, frame.schema)


def aggregate(frame, files, folder):
    """Run a slow aggregator."""
    grouped = sy.group_by(frame, "page", workers=PARTS)
    return rows_of(grouped.aggregate(sy.Count(), SlowSum("id", folder)))


def join(frame, files, folder):
    """Run a slow stage after a balanced join."""
    small = frame.select("page").distinct().withColumn("length", F.length("page"))
    joined = sy.join(frame, small, "page", workers=PARTS)
    return rows_of(joined.mapInArrow(slow(folder), joined.schema))


def full_join(frame, files, folder):
    """Run a slow stage after a full join with a key that is hot in both frames."""
    page = F.when(F.col("id") % 2 == 0, "hot").otherwise(F.concat(F.lit("none "), "id"))
    others = frame.sparkSession.range(0, OTHERS, 1, PARTS).select(page.alias("page"), "id")
    small = others.withColumnRenamed("id", "other").repartition(PARTS)
    joined = sy.join(frame, small, "page", "full", workers=PARTS)
    made = joined.mapInArrow(slow(folder), joined.schema)
    pairs = F.count("other"), F.count_distinct("other"), F.sum("other")
    return rows_of(made.groupBy(F.coalesce("id", F.lit(-1))).agg(F.count("*"), *pairs))


def stream(frame, files, folder):
    """Drop the duplicates of a stream, and run its rows on workers by a given plan."""
    kept = _one_of_each(frame.sparkSession, files)
    plan = sy.plan(frame, "page", workers=PARTS)
    made = _slow_map(kept, folder, routing=plan)
    writer = made.writeStream.format("memory").queryName(f"stream{uuid.uuid4().hex}")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return rows_of(frame.sparkSession.table(query.name))


def batches(frame, files, folder):
    """Drop the duplicates of a stream, and use a balancer in `foreachBatch`."""
    kept = _one_of_each(frame.sparkSession, files)
    balancer, out = sy.Balancer("page", workers=PARTS), tempfile.mkdtemp()

    def write(batch, number):
        balanced = balancer.repartition(batch).mapInArrow(slow(folder), kept.schema)
        balanced.write.mode("append").parquet(f"{out}/rows")

    query = kept.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows_of(frame.sparkSession.read.parquet(f"{out}/rows"))


def _one_of_each(spark, files):
    path = tempfile.mkdtemp()
    copies(spark).write.mode("overwrite").parquet(path)
    stream = spark.readStream.schema("page string, id long, copy long, part double").parquet(path)
    return stream.dropDuplicates(["id"])


def sees_steelyard(frame, files, folder):
    """Return whether the Python of the executors can import this package."""

    def look(batches):
        import importlib.util

        for _ in batches:
            yield pa.record_batch({"there": [importlib.util.find_spec("steelyard") is not None]})

    return sorted({row[0] for row in frame.mapInArrow(look, "there boolean").collect()})


OPERATIONS = {
    f.__name__: f
    for f in (
        repartition,
        planned,
        map_arrow,
        map_arrow_on_files,
        map_arrow_on_large_files,
        scheme,
        whole_light_keys,
        aggregate,
        join,
        full_join,
        balancer,
        by_position,
        stream,
        batches,
        sees_steelyard,
    )
}


# Steps before an operation, whose results may change in a task retry. Each gives one row for each
# id; page and id never change, and a third column may change.


def copies(spark):
    """Return several copies of each row; the sum of their parts depends on the order."""
    numbers = spark.range(0, ROWS * COPIES, 1, PARTS)
    rows = numbers.selectExpr(f"id % {ROWS} AS id", f"id div {ROWS} AS copy", "id / 7 AS part")
    return rows.selectExpr("if(id % 2 = 0, 'hot', string(id % 50)) AS page", "*")


def sums(rows):
    """Add floating-point numbers in the order of arrival."""
    return rows.groupBy("page", "id").agg(F.sum("part").alias("sum"))


def firsts(rows):
    """Keep the first value that arrives."""
    return rows.groupBy("page", "id").agg(F.first("copy").alias("first"))


def lists(rows):
    """Collect all values in the order of arrival."""
    return rows.groupBy("page", "id").agg(F.collect_list("copy").alias("list"))


def duplicates(rows):
    """Keep one row of each id: the first that arrives."""
    return rows.select("page", "id", "copy").dropDuplicates(["id"])


def newest(rows):
    """Keep one row of each id with a window whose order does not distinguish copies."""
    window = Window.partitionBy("id").orderBy("page")
    ranked = rows.select("page", "id", "copy", F.row_number().over(window).alias("n"))
    return ranked.where("n = 1").drop("n")


def numbered(rows):
    """Number rows in the order of arrival."""

    def number(batches):
        start = 0
        for batch in batches:
            numbers = pa.array(range(start, start + batch.num_rows), pa.int64())
            start += batch.num_rows
            yield batch.append_column("number", numbers)

    one = rows.where("copy = 0").select("page", "id").repartition(PARTS)
    return one.mapInArrow(number, "page string, id long, number long")


STEPS = {f.__name__: f for f in (sums, firsts, lists, duplicates, newest, numbered)}


def start(master="local-cluster[3,1,1024]", **more):
    """Start executors that notice lost shuffle files soon and do not read them from local disk."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.shuffle.readHostLocalDisk": "false",
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "1s",
        "spark.locality.wait": "0s",
        "spark.sql.shuffle.partitions": "4",
        **CHECKPOINTS_ON_DISK,
        **RETRY_LOST_TASKS_ONLY,
        **more,
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def main(names, how, where):
    """Run operations on rows whose order may change in a task retry."""
    spark = start()
    try:
        numbers = spark.range(0, ROWS, 1, PARTS)
        rows = numbers.selectExpr("if(id % 2 = 0, 'hot', string(id % 50)) AS page", "id")
        rows.write.mode("overwrite").parquet(f"{where}/rows")
        results = {}
        for name in names:
            folder = None
            if how == "kill":
                folder = tempfile.mkdtemp(dir=where)
                Path(folder, "done").mkdir()
            steps, _, operation = name.rpartition(".")
            frame = STEPS[steps](copies(spark)) if steps else rows.repartition(PARTS)
            files = spark.read.parquet(f"{where}/rows")
            results[name] = OPERATIONS[operation](frame, files, folder)
            if folder is not None:
                assert Path(folder, "killed").exists(), "no executor was killed"
            Path(where, "results.json").write_text(json.dumps(results))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1].split(","), sys.argv[2], sys.argv[3])
