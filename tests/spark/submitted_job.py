"""A job for `spark-submit --py-files steelyard.whl`, whose driver has no other steelyard.

`submitted_job.py FOLDER OPERATION...` runs operations one after the other. FOLDER/results.json gets
the rows of each operation, or its error.
"""

import json
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.session import STATE_IN_ROCKSDB

WORKERS, ROWS = 2, 4000


def rows_of(frame):
    """Return all rows, sorted."""
    return sorted(map(list, frame.collect()))


def plan(frame, folder):
    """Return the number of workers, and the predicted load of the busiest one."""
    description = sy.plan(frame, "page", workers=WORKERS).describe()
    return description.workers, float(description.by_plan)


def repartition(frame, folder):
    """Return the sizes of the partitions, and all rows."""
    balanced = sy.repartition(frame, WORKERS, "page")
    return rows_of(balanced.groupBy(F.spark_partition_id()).count()), rows_of(balanced)


def balancer(frame, folder):
    """Return the rows of a second batch, planned from the counts of the first."""
    balancing = sy.Balancer("page", workers=WORKERS)
    balancing.repartition(frame).count()
    return rows_of(balancing.repartition(frame))


def join(frame, folder):
    """Join with one row for each page."""
    sizes = frame.groupBy("page").count()
    return rows_of(sy.join(frame, sizes, "page", workers=WORKERS).select("page", "id", "count"))


def map_arrow(frame, folder):
    """Return the rows of all workers unchanged."""
    grouped = sy.group_by(frame, "page", workers=WORKERS)
    return rows_of(grouped.map_arrow(lambda table: table, frame.schema))


def apply_in_pandas(frame, folder):
    """Return the number and the sum of the ids of each page; parts of the hot page are merged."""
    schema = "page string, n long, total long"

    def sums(key, rows):
        return rows.groupby("page", as_index=False).agg(n=("id", "size"), total=("id", "sum"))

    def merge(parts):
        return parts.groupby("page", as_index=False).sum()

    grouped = sy.group_by(frame, "page", workers=WORKERS)
    return rows_of(grouped.apply_in_pandas(sums, schema, merge=merge))


def aggregate(frame, folder):
    """Return the number and the sum of the ids of each page."""
    grouped = sy.group_by(frame, "page", workers=WORKERS)
    return rows_of(grouped.aggregate(sy.Count(), sy.Sum("id")))


def sketch(frame, folder):
    """Return the greatest id of each page, by a sketch."""
    grouped = sy.group_by(frame, "page", workers=WORKERS)
    return rows_of(grouped.aggregate(sy.Quantiles("id", [1])))


def scheme(frame, folder):
    """Route message by message."""
    files = frame.sparkSession.read.parquet(f"{folder}/rows")
    grouped = sy.group_by(files, "page", workers=WORKERS, routing=sy.schemes.named("porc"))
    return rows_of(grouped.map_arrow(lambda table: table, frame.schema))


def pull(frame, folder):
    """Count a stream in any task slot."""
    return _counted(frame, folder, "pull", sy.Sum("id"))


def pull_with_state(frame, folder):
    """Count a stream with an aggregator that Spark cannot merge."""
    return _counted(frame, folder, "pull_with_state", sy.TopK("id", 1))


def delegated(frame, folder):
    """Count a stream on workers that keep state."""
    return _counted(frame, folder, "delegated", sy.Sum("id"), placement=sy.Delegated())


def delegated_map(frame, folder):
    """Return the rows of a stream unchanged from workers that keep state."""
    grouped = _grouped(frame, folder, "delegated_map", placement=sy.Delegated())
    made = grouped.map_arrow(lambda table: table, frame.schema)
    return _written(made, folder, "delegated_map", "append")


def sees_steelyard(frame, folder):
    """Return whether the Python of the executors can import this package."""

    def look(_):
        import importlib.util

        return importlib.util.find_spec("steelyard") is not None

    return rows_of(frame.limit(1).select(F.udf(look, "boolean", useArrow=False)("id")))


def _counted(frame, folder, name, aggregator, **how):
    counts = _grouped(frame, folder, name, **how).aggregate(sy.Count(), aggregator)
    return _written(counts, folder, name, "update")


def _grouped(frame, folder, name, **how):
    stream = frame.sparkSession.readStream.schema(frame.schema).parquet(f"{folder}/rows")
    control = f"{folder}/control-{name}"
    return sy.group_stream(stream, "page", workers=WORKERS, control=control, **how)


def _written(result, folder, name, mode):
    writer = result.writeStream.outputMode(mode).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint-{name}")
    found = []
    query = writer.foreachBatch(lambda batch, _: found.extend(rows_of(batch))).start()
    query.awaitTermination()
    return sorted(found)


def main(folder, *operations):
    """Run operations, and write their results."""
    spark = SparkSession.builder.config(map=STATE_IN_ROCKSDB).getOrCreate()
    numbers = spark.range(0, ROWS, 1, 2)
    rows = numbers.selectExpr("if(id % 2 = 0, 'hot', string(id % 50)) AS page", "id")
    rows.coalesce(1).write.parquet(f"{folder}/rows")
    results = {"steelyard": {"result": sy.__file__}}
    for name in operations:
        try:
            results[name] = {"result": globals()[name](rows, folder)}
        except Exception as error:  # noqa: BLE001  # the test reads it
            kind = type(error).__name__
            trace = traceback.format_exc()
            results[name] = {"error": str(error), "kind": kind, "trace": trace}
        Path(folder, "results.json").write_text(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
