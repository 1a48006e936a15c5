"""`repartition` keeps the rows, follows the plan and gives equal partitions."""

import datetime
import decimal

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.hashing import buckets_of, hash_keys
from steelyard.plans import Planner
from steelyard.spark.columns import Key
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.versions.arrow import to_arrow
from tests.spark.every_type import ANSI, under

ROWS = 60_000


@pytest.fixture(scope="module")
def skewed(spark):
    """Return rows: half of them have one key, the others one of 5,000."""
    hot = F.when(F.col("id") % 2 == 0, F.lit("hot"))
    key = hot.otherwise(F.concat(F.lit("page "), (F.col("id") * 7919 % 5000).cast("string")))
    return spark.range(0, ROWS, 1, 4).select(key.alias("page"), "id").cache()


def sizes(frame):
    """Return the number of rows of each partition."""
    rows = frame.groupBy(F.spark_partition_id().alias("p")).count().collect()
    return {row["p"]: row["count"] for row in rows}


@given(
    counts=st.lists(st.integers(0, 10_000), min_size=32, max_size=32),
    more=st.lists(st.integers(0, 10_000), min_size=32, max_size=32),
    bins=st.integers(1, 12),
)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_native_routing_equals_the_route_of_the_plan(spark, counts, more, bins):
    """The Spark expression and `RoutingPlan.route` give the same bin for every row."""
    planner = Planner(bins, buckets=32)
    planner.update(counts)
    plan = planner.update(more)
    frame = spark.range(0, 2000, 1, 2).select("id", (F.col("id") % 97).alias("key"))
    routed = to_arrow(with_bin(frame, plan, Key(("key",), 32).bucket(), F.xxhash64("id")))
    expected = plan.route(buckets_of(hash_keys(routed["key"]), 32), hash_keys(routed["id"]))
    assert routed[BIN].to_pylist() == expected.tolist()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda f: f.repartition(2).withColumn("n", F.monotonically_increasing_id()), "n"),
        (lambda f: f.repartition(2).withColumn("n", F.rand(seed=1)), "n"),
        (lambda f: f.repartition(2).selectExpr("page", "uuid() AS n"), "n"),
    ],
)
def test_a_salt_that_changes_in_a_task_retry_is_refused(skewed, make, sentence):
    """Numbers by position are refused after a shuffle, and accepted on a scan."""
    with pytest.raises(ValueError, match=r"'n' comes from \w+\(\) after a shuffle; its value may"):
        sy.repartition(make(skewed), 4, "page", salt=[sentence])
    with pytest.raises(ValueError, match="name other columns, or write the frame to files first"):
        sy.group_by(make(skewed), "page", workers=4, salt=[sentence])
    scanned = skewed.sparkSession.range(0, 1000, 1, 2).selectExpr("id % 2 * (id % 9) AS page")
    scanned = scanned.withColumn("n", F.monotonically_increasing_id())
    assert 1000 == sy.repartition(scanned, 4, "page", salt=["n"]).count()
    if "id" in make(skewed).columns:
        sy.repartition(make(skewed), 4, "page")
    else:
        with pytest.warns(UserWarning, match=r"\(n comes from uuid\(\) after a shuffle\)"):
            sy.repartition(make(skewed), 4, "page")


def test_partitions_are_balanced_and_keys_stay_together(skewed):
    """No partition has more than 3 % above its share; each light key is in one partition."""
    balanced = sy.repartition(skewed, 8, "page")
    assert ["page", "id"] == balanced.columns
    assert max(sizes(balanced).values()) <= 1.03 * ROWS / 8
    placed = balanced.select("page", F.spark_partition_id().alias("p")).distinct()
    places = placed.groupBy("page").agg(F.count("p").alias("n"))
    copies = {row["page"]: row["n"] for row in places.collect()}
    assert copies.pop("hot") in (4, 5)
    assert set(copies.values()) == {1}
    by_key = skewed.repartition(8, "page")
    assert max(sizes(by_key).values()) > 4 * ROWS / 8


def test_rows_are_the_same(skewed):
    """Every id occurs once, with its page."""
    balanced = sy.repartition(skewed, 5, "page")
    assert sorted(skewed.collect()) == sorted(balanced.collect())


def test_capacities_and_weights_are_followed(skewed):
    """A worker of twice the capacity gets twice the rows; weights replace the number of rows."""
    plan = sy.plan(skewed, "page", workers=3, capacities=[2, 1, 1])
    got = sizes(sy.repartition(skewed, 3, "page", routing=plan))
    assert got[0] == pytest.approx(ROWS / 2, rel=0.03)
    heavy = skewed.withColumn("cost", F.when(F.col("id") % 3 == 1, 20).otherwise(1))
    by_cost = sy.repartition(heavy, 4, "page", weight="cost")
    costs = by_cost.groupBy(F.spark_partition_id()).agg(F.sum("cost").alias("cost")).collect()
    total = sum(row["cost"] for row in costs)
    assert max(row["cost"] for row in costs) <= 1.05 * total / 4


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("weight", ["9223372036854775807L", f"cast('{'9' * 38}' AS decimal(38))"])
def test_sums_of_large_weights_do_not_overflow(spark, weight, ansi):
    """The sum of weights need not fit into their type."""
    with under(spark, {ANSI: ansi}):
        rows = spark.range(64).selectExpr("id % 16 AS page", f"{weight} AS w", "1 AS one")
        heavy = sy.plan(rows, "page", workers=2, weight="w")
        assert heavy.shares == pytest.approx(sy.plan(rows, "page", workers=2, weight="one").shares)


def test_a_sample_is_enough_for_a_plan(skewed):
    """A tenth of the rows gives nearly the same balance."""
    plan = sy.plan(skewed, "page", workers=8, routing=sy.Balance(sample=0.1))
    assert max(sizes(sy.repartition(skewed, 8, "page", routing=plan)).values()) < 1.15 * ROWS / 8


def test_several_columns_nulls_and_any_type_are_keys(spark):
    """Every column that Spark can hash can be a key; null is a key."""
    rows = [
        (
            None if i % 3 == 0 else f"a{i % 50}",
            decimal.Decimal(i % 7),
            datetime.datetime(2020, 1, 1 + i % 9, tzinfo=datetime.UTC),
            bytes([i % 5]),
            [i, None],
            {"map": i},
            i,
        )
        for i in range(3000)
    ]
    kinds = (
        "a string, d decimal(10,2), t timestamp, b binary, l array<int>, m map<string,int>, i int"
    )
    frame = spark.createDataFrame(rows, kinds)
    for key in (["a"], ["a", "d"], ["t", "b"], ["l"]):
        balanced = sy.repartition(frame, 4, *key, salt=["i"])
        assert balanced.schema == frame.schema
        assert sorted(row["i"] for row in balanced.collect()) == list(range(3000))
        assert max(sizes(balanced).values()) <= 1.2 * 3000 / 4


def test_equal_rows_stay_together_and_are_warned_of(spark):
    """The warning advises a salt, and with a salt the rows are split."""
    frame = spark.range(0, 20_000, 1, 2).select(F.lit("hot").alias("page"), "id")
    with pytest.warns(UserWarning, match="equal rows stay in one partition; name columns"):
        together = sy.repartition(frame.select("page"), 4, "page")
    assert [20_000] == list(sizes(together).values())
    apart = sy.repartition(frame, 4, "page", salt=["id"])
    assert max(sizes(apart).values()) <= 1.05 * 5000


def test_the_partition_of_a_row_does_not_depend_on_the_order(skewed):
    """A task retry with another order of rows therefore gives the same result."""
    plan = sy.plan(skewed, "page", workers=6)

    def places(frame):
        routed = sy.repartition(frame, 6, "page", routing=plan)
        found = routed.select("id", F.spark_partition_id().alias("p")).collect()
        return {row["id"]: row["p"] for row in found}

    assert places(skewed) == places(skewed.orderBy(F.desc("id")).repartition(3))


def test_empty_frames_and_single_rows_work_with_a_plan(spark, skewed):
    """An empty frame needs a plan; a single row does not."""
    plan = sy.plan(skewed, "page", workers=4)
    empty = skewed.where("id < 0")
    assert sy.repartition(empty, 4, "page", routing=plan).count() == 0
    assert sy.repartition(skewed.where("id = 5"), 4, "page").count() == 1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: sy.repartition(f, 4, "pgae"), "there is no column 'pgae'; the columns are"),
        (lambda f: sy.repartition(f, 4), "key needs at least one column"),
        (lambda f: sy.repartition(f, 0, "page"), "workers must be a whole number"),
        (lambda f: sy.repartition(f, 4, "page", salt=["x"]), "salt: there is no column 'x'"),
        (lambda f: sy.repartition(f, 4, "page", weight="x"), "weight: there is no column 'x'"),
        (
            lambda f: sy.plan(f, "page", workers=4, routing=sy.Balance(epsilon=0)),
            "epsilon must be a number above 0",
        ),
        (
            lambda f: sy.plan(f, "page", workers=4, routing=sy.Balance(sample=2)),
            "sample must be a number above 0",
        ),
        (
            lambda f: sy.plan(f, "page", workers=4, routing=sy.Balance(buckets=3)),
            "buckets must be at least",
        ),
        (lambda f: sy.plan(f, "page", workers=2, capacities=[1, 0]), "capacities must be positive"),
        (lambda f: sy.plan(f.where("id < 0"), "page", workers=2), "there are no rows to plan for"),
        (
            lambda f: sy.repartition(f, 3, "page", routing=sy.Planner(4).plan),
            "the plan is for 4 workers, not for 3",
        ),
        (
            lambda f: sy.repartition(f.join(f, "page"), 3, "page"),
            "must differ in more than case; rename all but one of 'id', 'id'",
        ),
        (
            lambda f: sy.plan(f.withColumn("w", F.lit(-1)), "page", workers=2, weight="w"),
            "column 'w' must hold numbers of at least 0",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(skewed, call, sentence):
    """The error comes before any row is moved."""
    with pytest.raises(ValueError, match=sentence):
        call(skewed)


def test_pandas_frames_and_lists_of_names_get_one_sentence(skewed):
    """Every call refuses a pandas DataFrame, and a list as the key."""
    other = pd.DataFrame({"page": ["a"]})
    calls = (
        lambda frame, *key: sy.repartition(frame, 4, *key),
        lambda frame, *key: sy.plan(frame, *key, workers=4),
        lambda frame, *key: sy.group_by(frame, *key, workers=4),
    )
    for call in calls:
        with pytest.raises(TypeError, match=r"must be a Spark DataFrame, got pandas.DataFrame; co"):
            call(other, "page")
        with pytest.raises(TypeError, match="key: pass the columns one by one, 'page', 'id', not"):
            call(skewed, ["page", "id"])
    with pytest.raises(TypeError, match="small must be a Spark DataFrame, got pandas"):
        sy.join(skewed, other, "page", workers=4)
    with pytest.raises(TypeError, match="frame must be a Spark DataFrame, got NoneType"):
        sy.doctor.examine(None, "page", 4)
    with pytest.raises(TypeError, match="batch must be a Spark DataFrame, got pandas"):
        sy.Balancer("page", workers=4).repartition(other)


def test_streams_need_a_plan(spark, skewed):
    """Rows of a stream cannot be counted first; with a plan they are routed."""
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS page", "value")
    others = r"pass a plan, use sy.group_stream\(stream, ...\), or sy.Balancer in foreachBatch"
    with pytest.raises(ValueError, match=f"and a stream has no end; {others}"):
        sy.repartition(stream, 4, "page")
    with pytest.raises(ValueError, match=r"plan the files that it reads, or use sy.group_stream"):
        sy.plan(stream, "page", workers=4)
    assert sy.repartition(stream, 4, "page", routing=sy.Planner(4).plan).isStreaming
