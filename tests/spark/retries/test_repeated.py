"""Frames whose rows arrive in the same order after a task retry."""

import pytest
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeats_its_order


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Rows in Parquet files."""
    path = str(tmp_path_factory.mktemp("scans") / "rows")
    spark.range(0, 100, 1, 2).selectExpr("id", "id % 7 AS page").write.parquet(path)
    return spark.read.parquet(path)


@pytest.mark.parametrize(
    ("repeats", "make"),
    [
        (True, lambda f: f),
        (True, lambda f: f.where("id > 3").withColumn("n", F.col("id") + 1)),
        (True, lambda f: f.union(f)),
        (True, lambda f: f.sample(0.5, seed=1)),
        (True, lambda f: f.withColumn("n", F.explode(F.array(F.lit(1), F.lit(2))))),
        (False, lambda f: f.repartition(2)),
        (False, lambda f: f.distinct()),
        (False, lambda f: f.orderBy("id")),
        (False, lambda f: f.limit(5)),
        (False, lambda f: f.join(f.withColumnRenamed("id", "other"), "page")),
        (False, lambda f: f.join(F.broadcast(f.withColumnRenamed("id", "other")), "page")),
        (False, lambda f: f.groupBy("page").count()),
        (False, lambda f: f.union(f.repartition(2))),
        (False, lambda f: f.mapInArrow(lambda batches: batches, f.schema)),
        (False, lambda f: f.withColumn("n", F.udf(lambda n: n, "long")("id"))),
        (False, lambda f: f.where("id IN (SELECT max(id) FROM range(3))")),
    ],
)
def test_only_rows_that_come_directly_from_files_repeat_their_order(files, repeats, make):
    """Filters and computations row by row keep the order; other and unknown steps do not."""
    assert repeats == repeats_its_order(make(files))


def test_a_cached_frame_stays_cached(files):
    """The analysis of a plan does not uncache the frame."""
    cached = files.repartition(2).cache()
    try:
        repeats_its_order(cached)
        assert cached.storageLevel.useMemory
    finally:
        cached.unpersist()


def test_a_cached_frame_does_not_repeat_its_order(files):
    """Spark may compute a lost block again, with its rows in another order."""
    cached = files.repartition(2).cache()
    try:
        assert not repeats_its_order(cached)
    finally:
        cached.unpersist()
