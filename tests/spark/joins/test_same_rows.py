"""A balanced join has the rows of Spark's join, whichever keys are hot and have no match."""

import numpy as np
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.joins.frames import POOLS, assert_as_spark, random_frame
from tests.spark.query_plans import explained

TYPES_OF_JOINS = ["inner", "left", "right", "full", "semi", "anti"]
HOT = {"neither": (0, 0), "big": (0.6, 0), "small": (0, 0.6), "both": (0.6, 0.6)}


@pytest.mark.parametrize("how", TYPES_OF_JOINS)
@pytest.mark.parametrize("hot", HOT)
@pytest.mark.parametrize("seed", [1])
def test_the_rows_are_those_of_sparks_join(spark, how, hot, seed):
    """Keys are null, NaN, 0.0 or -0.0, and some have no match in the other frame."""
    rng = np.random.default_rng([seed, *map(ord, how + hot)])
    kind = str(rng.choice(list(POOLS)))
    in_big, in_small = HOT[hot]
    big = random_frame(spark, rng, 300, kind, in_big)
    small = random_frame(spark, rng, 60, kind, in_small, name="m")
    # Some keys are in one frame only; a hot one is among them in every second case.
    big = big.where(F.xxhash64("k") % 7 != seed % 7)
    small = small.where(F.xxhash64("k") % 5 != seed % 5)
    assert_as_spark(big, small, how=how)


@pytest.mark.parametrize("how", TYPES_OF_JOINS)
def test_a_grid_joins_each_pair_once(spark, how):
    """Hot rows of both frames are divided, and both are copied."""
    rng = np.random.default_rng(list(map(ord, how)))
    big = random_frame(spark, rng, 200, hot=0.8)
    small = random_frame(spark, rng, 200, hot=0.8, name="m").where("k > 3 or k is null or k = 0")
    joined = assert_as_spark(big, small, how=how, workers=6)
    assert ("__steelyard_column" in explained(joined)) == (how not in ("semi", "anti"))


@pytest.mark.parametrize("how", TYPES_OF_JOINS)
@pytest.mark.parametrize(("rows", "others"), [(0, 9), (9, 0), (0, 0)])
def test_frames_may_be_empty(spark, how, rows, others):
    """The rows are those of Spark's join."""
    rng = np.random.default_rng(2)
    big, small = random_frame(spark, rng, rows), random_frame(spark, rng, others, name="m")
    assert_as_spark(big, small, how=how)


@pytest.mark.parametrize("how", ["right", "full"])
def test_an_unmatched_row_of_small_is_there_once(spark, how):
    """It shares the bucket of a hot key, so it is copied, and no copy has a match."""
    big = spark.range(0, 400, 1, 2).selectExpr("0 AS k", "id")
    small = spark.range(0, 40, 1, 2).selectExpr("int(id) AS k", "id AS other")
    joined = assert_as_spark(big, small, how=how, workers=4, routing=sy.Balance(buckets=4))
    assert joined.where("id is null").count() == 39


def test_a_plan_of_the_user_serves_every_type_of_join(spark):
    """The plan splits hot keys, and unmatched rows still appear once."""
    rng = np.random.default_rng(4)
    big, small = random_frame(spark, rng, 300, hot=0.5), random_frame(spark, rng, 60, name="m")
    plan = sy.plan(big, "k", workers=5, routing=sy.Balance(buckets=16))
    assert plan.splits
    for how in TYPES_OF_JOINS:
        assert_as_spark(big, small.where("k % 3 > 0 or k is null"), how=how, routing=plan)


@pytest.mark.parametrize(
    "settings", [{"weight": "n"}, {"capacities": [1, 2, 3, 4, 5]}, {"salt": ["n"]}], ids=str
)
def test_settings_do_not_change_rows(spark, settings):
    """Weights, capacities and salts change only where the rows go."""
    rng = np.random.default_rng(5)
    big = random_frame(spark, rng, 300, "double", hot=0.6)
    small = random_frame(spark, rng, 60, "double", hot=0.6, name="m")
    assert_as_spark(big, small, how="full", **settings)


@pytest.mark.parametrize("how", ["full", "semi"])
def test_a_weight_and_a_salt_may_be_fields_or_in_another_case(spark, how):
    """Both choose the same partitions, and no temporary column is in the result."""
    rng = np.random.default_rng(6)
    big = random_frame(spark, rng, 300, hot=0.6).selectExpr("*", "struct(n AS Number) AS User")
    small = random_frame(spark, rng, 60, name="m")
    found = []
    for name in ("n", "N", "user.number"):
        joined = assert_as_spark(big, small, how=how, weight=name, salt=[name])
        found.append(sorted(map(repr, joined.select("*", F.spark_partition_id()).collect())))
    assert [found[0]] * 3 == found
