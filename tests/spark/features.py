"""The features of Steelyard, each as a small job whose result is known.

A session and a folder enter each job. `SINCE` says which version of Spark the job needs, classic
and through Spark Connect.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.streaming.running import kept, last_of, table

ROWS, WORKERS = 4000, 4
SCHEMA = "page string, id long, at timestamp"
STREAMS, STREAMS_ON_CONNECT = (4, 0), (4, 1)
"""The first versions of Spark with streams."""
CONNECT = (4, 0)
"""The first version with Spark Connect."""

FEATURES = {}
"""Jobs by the name of their feature."""
SINCE = {}
"""The first versions of Spark with each feature: classic, and through Spark Connect."""


def feature(name, classic=(3, 5), connect=CONNECT):
    """Register a job."""

    def register(job):
        FEATURES[name], SINCE[name] = job, (classic, connect)
        return job

    return register


def rows_of(spark):
    """Rows of which half have one key; the others have 50 keys."""
    return spark.range(ROWS).selectExpr(
        "if(id % 2 = 0, 'hot', concat('page ', id % 100)) AS page",
        "id",
        "timestamp_seconds(id) AS at",
    )


def counts():
    """Return the number of rows of each key."""
    found = {"hot": ROWS // 2}
    for i in range(1, ROWS, 2):
        found[f"page {i % 100}"] = found.get(f"page {i % 100}", 0) + 1
    return found


def counted(frame):
    """Return the second column by the first."""
    return {row[0]: row[1] for row in frame.collect()}


def tall(table):
    """Count the rows of one call."""
    return pa.table({"rows": [table.num_rows], "sum": [pc.sum(table["id"]).as_py()]})


def assert_balanced(frame):
    """Fail if the largest partition has more than 1.1 times its share."""
    sizes = [row["count"] for row in frame.groupBy(F.spark_partition_id()).count().collect()]
    assert sum(sizes) == ROWS
    assert max(sizes) < 1.1 * ROWS / WORKERS


@feature("`sy.plan`, `sy.repartition`")
def repartition(spark, folder):
    plan = sy.plan(rows_of(spark), "page", workers=WORKERS)
    assert_balanced(sy.repartition(rows_of(spark), WORKERS, "page"))
    assert_balanced(sy.repartition(rows_of(spark), WORKERS, "page", routing=plan))


@feature("`sy.balanced`", (4, 0))
def balanced(spark, folder):
    assert_balanced(rows_of(spark).transform(sy.balanced("page", workers=WORKERS, salt=["id"])))


@feature("`sy.join`")
def join(spark, folder):
    titles = spark.range(100).selectExpr(
        "if(id = 0, 'hot', concat('page ', id)) AS page", "id AS n"
    )
    for how in ("inner", "left"):
        joined = sy.join(rows_of(spark), titles, "page", how, workers=WORKERS)
        assert_balanced(joined)
        expected = rows_of(spark).join(titles, "page", how)
        assert sorted(joined.collect()) == sorted(expected.collect())


@feature("`sy.group_by(...).map_arrow`")
def map_arrow(spark, folder):
    made = sy.group_by(rows_of(spark), "page", workers=WORKERS).map_arrow(
        tall, "rows long, sum long"
    )
    assert tuple(made.groupBy().sum().first()) == (ROWS, sum(range(ROWS)))


@feature("`sy.group_by(...).map_pandas`")
def map_pandas(spark, folder):
    grouped = sy.group_by(rows_of(spark), "page", workers=WORKERS)
    made = grouped.map_pandas(lambda rows: rows[["id", "page"]], "page string, id long")
    assert sorted(made.collect()) == sorted(rows_of(spark).select("page", "id").collect())


@feature("`sy.group_by(...).apply_in_pandas`")
def apply_in_pandas(spark, folder):
    def sums(rows):
        return rows.groupby("page", as_index=False)["id"].size().rename(columns={"size": "n"})

    def merge(parts):
        return parts.groupby("page", as_index=False).sum()

    grouped = sy.group_by(rows_of(spark), "page", workers=WORKERS)
    made = grouped.apply_in_pandas(sums, "page string, n long", merge=merge)
    assert counted(made) == counts()
    assert made.count() == len(counts())


@feature("`sy.group_by(...).map_arrow` with whole light keys")
def whole_light_keys(spark, folder):
    grouped = sy.group_by(rows_of(spark), "page", workers=WORKERS, whole_light_keys=True)
    assert [row.page for row in grouped.hot_keys] == ["hot"]
    made = grouped.map_arrow(tall, "rows long, sum long")
    assert tuple(made.groupBy().sum().first()) == (ROWS, sum(range(ROWS)))


@feature("`sy.group_by(..., routing=scheme).map_arrow`")
def routed_by_a_scheme(spark, folder):
    rows_of(spark).write.parquet(f"{folder}/rows")
    rows, scheme = spark.read.parquet(f"{folder}/rows"), sy.schemes.named("porc")
    grouped = sy.group_by(rows, "page", workers=WORKERS, routing=scheme)
    made = grouped.map_arrow(tall, "rows long, sum long")
    assert tuple(made.groupBy().sum().first()) == (ROWS, sum(range(ROWS)))


@feature("`sy.group_by(...).aggregate`, counts to variances")
def aggregate(spark, folder):
    grouped = sy.group_by(rows_of(spark), "page", workers=WORKERS)
    made = grouped.aggregate(sy.Count(), sy.Max("id"), sy.Variance("id"))
    assert counted(made) == counts()


@feature("`sy.group_by(...).aggregate`, sketches and sets")
def sketches(spark, folder):
    grouped = sy.group_by(rows_of(spark), "page", workers=WORKERS)
    asked = (
        sy.ApproxDistinct("id"),
        sy.Quantiles("id", [0.5]),
        sy.TopK("id", 2),
        sy.CollectSet("id"),
    )
    found = {row[0]: row[1:] for row in grouped.aggregate(*asked).collect()}
    assert abs(found["hot"][0] - ROWS / 2) < ROWS / 20
    assert len(found["page 1"][-1]) == counts()["page 1"]


@feature("`sy.Balancer` in `foreachBatch`")
def balancer(spark, folder):
    balanced = sy.Balancer("page", workers=WORKERS)
    for _ in range(2):
        assert_balanced(balanced.repartition(rows_of(spark)))


@feature("`sy.doctor.examine`, `steelyard doctor`")
def doctor(spark, folder):
    found = sy.doctor.examine(rows_of(spark), "page", workers=WORKERS, time="at")
    assert (found.messages, found.keys, found.p1) == (ROWS, 51, 0.5)


def streamed(spark, folder, define, mode="update"):
    """Run a stream of two micro-batches to its end, and return the rows that it writes."""
    rows_of(spark).repartition(2).write.mode("overwrite").parquet(f"{folder}/in")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    settings = STATE_IN_ROCKSDB | {"spark.sql.shuffle.partitions": str(WORKERS)}
    with kept(spark, settings):
        for name, value in settings.items():
            spark.conf.set(name, value)
        made = define(reader.parquet(f"{folder}/in"))
        return table(made, f"{folder}/checkpoint", mode)


def grouped_stream(folder, **more):
    """Return a function that groups a stream."""
    return lambda stream: sy.group_stream(
        stream, "page", workers=WORKERS, control=f"{folder}/control", **more
    )


def stream_feature(name, **more):
    """Register jobs for both placements."""

    def register(job):
        for placement in (sy.Pull(), sy.Delegated()):
            shown = type(placement).__name__

            def run(spark, folder, placement=placement):
                job(spark, folder, grouped_stream(folder, placement=placement, **more))

            feature(f"stream, `sy.{shown}()`: {name}", STREAMS, STREAMS_ON_CONNECT)(run)
        return job

    return register


@stream_feature("aggregates that Spark merges")
def stream_of_counts(spark, folder, group):
    written = streamed(spark, folder, lambda s: group(s).aggregate(sy.Count(), sy.Mean("id")))
    assert {key[0]: found[0] for key, found in last_of(written).items()} == counts()


@stream_feature("sketches and sets")
def stream_of_sets(spark, folder, group):
    written = streamed(spark, folder, lambda s: group(s).aggregate(sy.Count(), sy.TopK("id", 2)))
    best = {}
    for page, count, _ in written:
        best[page] = max(best.get(page, 0), count)
    assert best == counts()


@stream_feature("`map_arrow`")
def stream_of_calls(spark, folder, group):
    written = streamed(
        spark, folder, lambda s: group(s).map_arrow(tall, "rows long, sum long"), "append"
    )
    assert (ROWS, sum(range(ROWS))) == tuple(map(sum, zip(*written, strict=True)))


@stream_feature("windows", window=sy.Window("at", "1000 seconds"))
def stream_of_windows(spark, folder, group):
    written = streamed(spark, folder, lambda s: group(s).aggregate(sy.Count()))
    best = {}
    for window, page, count in written:
        best[str(window), page] = max(best.get((str(window), page), 0), count)
    assert sum(best.values()) == ROWS
    assert len({window for window, _ in best}) == 4
