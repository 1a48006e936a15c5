"""Keys that are hot in both frames: the pairs of matching rows are balanced."""

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.versions.arrow import to_arrow

WORKERS = 8


def frames(spark, rows, others, hot="id % 4 = 0"):
    """Return two frames; a quarter of the rows of each has key 0."""
    key = f"if({hot}, 0, 1 + id % 997)"
    big = spark.range(0, rows, 1, 4).selectExpr(f"{key} AS k", "id AS n")
    small = spark.range(0, others, 1, 2).selectExpr(f"{key} AS k", "id AS m")
    return big, small


def pairs_by_partition(joined):
    """Return the rows of each partition of a join."""
    counted = joined.groupBy(F.spark_partition_id().alias("p")).count()
    return to_arrow(counted)["count"].to_numpy()


@pytest.mark.parametrize(("rows", "others"), [(40_000, 400), (3000, 3000), (400, 20_000)])
@pytest.mark.parametrize("how", ["inner", "full"])
def test_every_partition_has_its_share_of_the_pairs(spark, rows, others, how):
    """The larger side is divided; if both are large, both are."""
    big, small = frames(spark, rows, others)
    joined = sy.join(big, small, "k", how, workers=WORKERS)
    sizes = pairs_by_partition(joined)
    assert sizes.sum() == big.join(small, "k", how).count()
    assert sizes.max() <= 1.2 * sizes.sum() / WORKERS


def test_the_rows_of_the_hot_key_are_all_paired(spark):
    """Each pair is there once; the columns show which rows met."""
    big, small = frames(spark, 2000, 2000)
    joined = sy.join(big, small, "k", workers=WORKERS).where("k = 0")
    found = joined.agg(F.count("*"), F.count_distinct("n", "m"), F.countDistinct("n")).first()
    assert tuple(found) == (500 * 500, 500 * 500, 500)


def test_equal_rows_of_small_are_not_divided(spark):
    """Their content cannot distinguish them, so the rows of `big` are divided instead."""
    big, small = frames(spark, 3000, 3000)
    joined = sy.join(big, small.selectExpr("k", "1 AS m"), "k", workers=WORKERS)
    sizes = pairs_by_partition(joined)
    assert sizes.max() <= 1.3 * sizes.sum() / WORKERS


def test_a_weight_decides_alone(spark):
    """Rows of the hot key have a small weight, so the key stays in one partition."""
    big, small = frames(spark, 2000, 2000)
    weighted = big.withColumn("w", F.when(F.col("k") == 0, 0.001).otherwise(1))
    joined = sy.join(weighted, small, "k", workers=WORKERS, weight="w")
    assert joined.where("k = 0").select(F.spark_partition_id()).distinct().count() == 1


def test_a_sample_finds_the_hot_key(spark):
    """The pairs are estimated from a part of the rows of both frames."""
    big, small = frames(spark, 20_000, 4000)
    joined = sy.join(big, small, "k", workers=WORKERS, routing=sy.Balance(sample=0.3))
    sizes = pairs_by_partition(joined)
    assert sizes.max() <= 1.5 * sizes.sum() / WORKERS
