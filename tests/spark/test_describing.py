"""`sy.plan` counts the partitions of Spark's own `repartition`, and names hot keys."""

import re
from collections import Counter

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.doctor.plain_text import columns_of
from steelyard.reported_keys import ReportedKeys
from tests.hostile import HOSTILE, obeyed_by_a_terminal

ROWS, WORKERS = 6000, 8

KEYS = {
    "string": "if(id % 3 = 0, 'hot', concat('page ', id % 500))",
    "null": "if(id % 3 = 0, null, concat('page ', id % 500))",
    "long": "if(id % 3 = 0, 7L, id % 500)",
    "double": "if(id % 3 = 0, -0.0D, if(id % 5 = 0, double('NaN'), double(id % 50)))",
    "decimal": "cast(id % 500 AS decimal(30, 4))",
    "binary": "cast(if(id % 3 = 0, 'hot', string(id % 500)) AS binary)",
    "timestamp": "timestamp_seconds(id % 500)",
    "struct": "struct(id % 50 AS a, string(id % 7) AS b)",
    "array": "array(id % 50, id % 7)",
}


def frame_of(spark, key):
    """Return rows with a key, in an order in which the last partition has other keys."""
    rows = spark.range(0, ROWS, 1, 4).selectExpr(f"{key} AS key", "id", "id % 10 AS weight")
    return rows.sortWithinPartitions("key")


def sizes(frame, amount):
    """Return an amount of the rows of each partition that has any."""
    rows = frame.groupBy(F.spark_partition_id().alias("p")).agg(F.expr(amount).alias("n"))
    return {row["p"]: row["n"] for row in rows.collect()}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("weight", [None, "weight"])
def test_key_grouping_is_that_of_spark(spark, key, weight):
    """The loads are those of the partitions of `repartition(n, key)`, one by one."""
    frame = frame_of(spark, key)
    described = sy.plan(frame, "key", workers=WORKERS, weight=weight).describe()
    amount = "count(*)" if weight is None else "sum(weight)"
    found = sizes(frame.repartition(WORKERS, "key"), amount)
    fair = sum(found.values()) / WORKERS
    expected = [found.get(worker, 0) / fair for worker in range(WORKERS)]
    assert pytest.approx(expected) == list(described.loads_by_key)
    assert pytest.approx(max(expected)) == described.by_key_grouping


def test_key_grouping_ignores_capacities_and_counts_the_sample(spark):
    """Spark knows no capacities; loads are relative to a worker's share of the counted rows."""
    frame = frame_of(spark, KEYS["string"]).withColumn("other", F.col("id") % 3)
    capacities = [4, 2, 1, 1]
    plan = sy.plan(frame, "key", "other", workers=4, capacities=capacities)
    found = sizes(frame.repartition(4, "key", "other"), "count(*)")
    expected = [found.get(w, 0) / ROWS / (capacities[w] / 8) for w in range(4)]
    assert pytest.approx(expected) == list(plan.describe().loads_by_key)
    sample = sy.plan(frame, "key", workers=4, routing=sy.Balance(sample=0.5))
    assert sample.counts.sum() == sample.facts.by_partition.sum() < 0.6 * ROWS
    found = sizes(frame.repartition(4, "key"), "count(*)")
    expected = [found.get(w, 0) / ROWS * 4 for w in range(4)]
    assert pytest.approx(expected, rel=0.15) == list(sample.describe().loads_by_key)


def hot_lines(described):
    """Return the lines of the hot buckets; every line fits a terminal."""
    lines = str(described).splitlines()
    assert max(map(columns_of, lines)) <= 80
    assert [] == obeyed_by_a_terminal(str(described))
    return [line.strip() for line in lines[4:]]


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("'front page'", "front page "),
        ("null", "(null) "),
        ("''", "(empty) "),
        ("repeat('x', 10000)", "x" * 29 + "… "),
        (HOSTILE, "[/x][bold]:boom:\\x1b[31m\\x1b]…  "),
        ("unhex('00ff41')", "0x00FF41 "),
        ("7L", "7 "),
        ("date'2024-02-29'", "2024-02-29 "),
        ("struct(1 AS a, 'b' AS c)", "{1, b} "),
    ],
    ids=["text", "null", "empty", "long", "markup", "binary", "long integer", "date", "struct"],
)
def test_a_hot_key_is_named(spark, key, shown):
    """The most frequent key of a split bucket is shown in place of the number of the bucket."""
    column = F.lit(HOSTILE) if key == HOSTILE else F.expr(key)
    frame = spark.range(0, ROWS, 1, 4).select(column.alias("key"), "id")
    (line,) = hot_lines(sy.plan(frame, "key", workers=WORKERS).describe())
    assert line.startswith(shown)
    assert line.endswith("100.00 % of the stream, on 8 workers")


def test_a_hot_key_of_two_columns_is_named(spark):
    """Each column has its value, and a null is no text."""
    frame = spark.range(0, ROWS, 1, 4).selectExpr(
        "if(id % 2 = 0, null, string(id)) AS page", "if(id % 2 = 0, -1L, id) AS user"
    )
    (line,) = hot_lines(sy.plan(frame, "page", "user", workers=WORKERS).describe())
    assert line.startswith("(null), -1 ")


def test_keys_of_one_bucket_are_named_by_their_frequency(spark):
    """At most three keys are named, and whether there are others."""
    frame = spark.range(0, ROWS, 1, 4).selectExpr(
        "case when id % 10 < 4 then 'most' when id % 10 < 7 then 'second' "
        "else concat('rare ', id % 300) end AS key",
        "id",
    )
    plan = sy.plan(frame, "key", workers=1, routing=sy.Balance(buckets=1))
    assert [] == hot_lines(plan.describe())
    plan = sy.plan(frame, "key", workers=2, routing=sy.Balance(buckets=2))
    counts = Counter(row["key"] for row in frame.collect())
    for hot in plan.describe().hot:
        assert hot.keys[0].name[0] == max((key.name[0] for key in hot.keys), key=counts.get)
        assert [key.share for key in hot.keys] == sorted((k.share for k in hot.keys), reverse=True)
        assert 1 <= len(hot.keys) <= 3
        assert sum(key.share for key in hot.keys) <= 1


def test_a_hot_key_at_the_end_of_sorted_data_is_named(spark):
    """The names come from all partitions, also if only a sample of the rows is read."""
    frame = spark.range(0, 100_000, 1, 4).selectExpr(
        "if(id < 40000, 'first', if(id >= 60000, 'last', concat('page ', id))) AS key", "id"
    )
    described = sy.plan(frame, "key", workers=WORKERS).describe()
    assert [("first",), ("last",)] == sorted(hot.keys[0].name for hot in described.hot)
    assert all(hot.keys[0].share > 0.99 for hot in described.hot)


def test_a_hot_key_by_weight_is_named(spark):
    """A single row may have most of the weight."""
    frame = spark.range(0, 50_000, 1, 4).selectExpr(
        "if(id = 49999, 'heavy', concat('page ', id % 5000)) AS key",
        "if(id = 49999, 50000, 1) AS cost",
        "if(id = 49999, 50000, null) AS rarely",
    )
    (hot,) = sy.plan(frame, "key", workers=4, weight="cost").describe().hot
    assert ("heavy",) == hot.keys[0].name
    few = sy.Balance(buckets=64)
    (hot,) = sy.plan(frame, "key", workers=4, weight="rarely", routing=few).describe().hot
    assert [(("heavy",), 1.0)] == [(key.name, key.share) for key in hot.keys]


def test_names_are_no_part_of_the_routing(spark):
    """A plan is equal to the plan of its counts alone, and its JSON has no key."""
    plan = sy.plan(frame_of(spark, KEYS["string"]), "key", workers=WORKERS)
    assert plan == sy.Planner(WORKERS).update(plan.counts)
    assert "hot" in str(plan.describe())
    assert "hot" not in plan.to_json()
    assert "hot" not in repr(plan)
    assert hash(plan) == hash(sy.RoutingPlan.from_json(plan.to_json()))


@pytest.mark.parametrize("report_keys", ["hashed", "hidden"])
def test_a_description_names_keys_as_the_setting_says(spark, report_keys):
    """Keys that are personal data appear neither as text nor in a notebook."""
    frame = frame_of(spark, KEYS["string"])
    balance = sy.Balance(report_keys=report_keys)
    plan = sy.plan(frame, "key", workers=WORKERS, routing=balance)
    shown = ReportedKeys.of(report_keys).shown("hot")
    (hot,) = plan.describe().hot
    assert [key.name for key in hot.keys] == [(shown,)]
    texts = str(plan.describe()) + plan.describe()._repr_html_() + plan._repr_html_()
    assert shown in texts
    assert ">hot<" not in texts
    assert not re.search(r"^  hot ", str(plan.describe()), re.MULTILINE)


def test_hot_keys_may_be_invalid_utf8(spark):
    """Such bytes are shown as escape sequences."""
    key = "cast(if(id % 3 = 0, X'FF21', cast(string(id % 500) AS binary)) AS string) AS key"
    frame = spark.range(0, ROWS, 1, 2).selectExpr(key, "id")
    (hot,) = sy.plan(frame, "key", workers=WORKERS).describe().hot
    assert str(hot) == r"\xff!"
