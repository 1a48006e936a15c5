"""`explain` of a routed frame stays short, and shows no table of the plan."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.plans import Planner
from steelyard.spark.columns import Key
from steelyard.spark.native_routing import with_every_bin
from steelyard.spark.retries.repeated import repeated
from tests.spark.query_plans import explained

BUCKETS, WORKERS = 8192, 24
MOST = 5000
"""The most characters that routing may add."""


@pytest.fixture(scope="module")
def plan():
    """A plan with split buckets for 24 workers."""
    counts = [1.0] * BUCKETS
    counts[3], counts[77] = 4000.0, 1000.0
    made = Planner(WORKERS, buckets=BUCKETS).update(counts)
    assert len(made.splits) >= 2
    return made


@pytest.fixture(scope="module")
def rows(spark):
    return spark.range(0, 1000, 1, 2).selectExpr("string(id % 7) AS page", "id")


def lengths(frame):
    """Return the lengths of the plans that Spark shows in the web UI and in event logs."""
    return {mode: len(explained(frame, mode)) for mode in ("simple", "formatted")}


def added(frame, before):
    """Return the characters that a frame has more than another."""
    known = lengths(before)
    return {mode: length - known[mode] for mode, length in lengths(frame).items()}


def test_the_tables_of_a_plan_are_not_printed(rows, plan):
    """`repartition` adds less than 5 kB to the physical plan."""
    made = sy.repartition(rows, WORKERS, "page", routing=plan)
    assert max(added(made, rows).values()) < MOST
    made.collect()
    assert max(added(made, rows).values()) < MOST


def test_the_copied_side_of_a_join_is_short(rows, plan):
    """So does the side of a join of which rows are copied."""
    made = with_every_bin(rows, plan, Key(("page",), BUCKETS).bucket())
    assert max(added(made, rows).values()) < MOST


@pytest.mark.classic_only(reason="the request of the client contains the table")
@pytest.mark.needs_spark("4.0", reason="DataFrame.scalar")
def test_extended_plans_are_short_too(rows, plan):
    """All four plans together grow by less than 5 kB, on classic Spark."""
    made = sy.repartition(rows, WORKERS, "page", routing=plan)
    before = len(explained(rows, "extended"))
    assert len(explained(made, "extended")) - before < MOST


def test_routed_rows_are_deterministic(rows, plan):
    """The subquery with the table causes no doubt about the columns of a routed frame."""
    made = sy.repartition(rows.repartition(3), WORKERS, "page", routing=plan)
    assert {} == repeated(made).doubts
    grouped = made.withColumn("n", F.rand(seed=1))
    assert ["n"] == list(repeated(grouped).doubts)


@pytest.mark.classic_only(reason="a client has one session")
def test_a_routed_frame_keeps_the_active_session(spark, plan):
    """In `foreachBatch` the active session is the one that lists the running query."""
    other = spark.newSession()
    rows = other.range(9).selectExpr("string(id) AS page", "id")
    sy.repartition(rows, WORKERS, "page", routing=plan)
    assert SparkSession.getActiveSession() is spark
