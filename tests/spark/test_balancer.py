"""A balancer plans each micro-batch from earlier counts and keeps every row once."""

import os
import pickle
import struct
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark import balancer as module
from steelyard.spark.balancer import Balancer
from steelyard.spark.columns import Key
from steelyard.spark.repartitioning import bucket_counts
from steelyard.spark.versions.arrow import to_arrow
from tests.waiting import until

ROWS = 8_000
WORKERS = 4


def page(hot):
    """Return an expression: half of the rows have the hot page, the others one of 3,000."""
    return f"if(id % 2 = 0, '{hot}', concat('page ', id * 7919 % 3000)) AS page"


def rows(spark, hot, start=0, number=ROWS):
    """Return a batch."""
    return spark.range(start, start + number, 1, 2).selectExpr(page(hot), "id")


def write(frame):
    """Run an action that needs every row."""
    frame.write.format("noop").mode("overwrite").save()


def largest(frame):
    """Return the size of the largest partition, relative to an equal share."""
    sizes = to_arrow(frame.groupBy(F.spark_partition_id()).count())["count"].to_numpy()
    return sizes.max() / sizes.sum() * WORKERS


def learned_counts(balancer, frame):
    """Return the counts of the balancer's plan after an action on a frame."""
    write(balancer.repartition(frame))
    balancer.repartition(frame)
    return balancer.plan.counts


@pytest.fixture
def warm(spark):
    """Return a balancer that has counted a batch, and forgets it after the next one."""
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(decay=0))
    write(balancer.repartition(rows(spark, "hot")))
    return balancer


@pytest.fixture
def impatient(monkeypatch):
    """Wait only briefly for counts that never arrive."""
    monkeypatch.setattr(module, "_PATIENCE", 0.1)


@pytest.mark.slow
def test_a_stream_stays_balanced_when_its_hot_key_changes(spark, tmp_path, request):
    """The balance is restored one batch after the change, and every row arrives once."""
    # Spark Connect does not show how a micro-batch is computed, so the salt has to be named.
    salt = ["id"] if request.config.getoption("--connect") else None
    for batch, hot in enumerate(["red", "red", "blue", "blue"]):
        there = tmp_path / "read" / f"batch {batch}.parquet"
        there.parent.mkdir(exist_ok=True)
        pq.write_table(to_arrow(rows(spark, hot, ROWS * batch)), there)
        os.utime(there, (1e9 + batch, 1e9 + batch))
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(decay=0), salt=salt)

    def write_batch(batch, number):
        batch.sparkSession.createDataFrame([], "id long")  # this changes the active session
        balanced = balancer.repartition(batch).withColumn("worker", F.spark_partition_id())
        written = balanced.withColumn("batch", F.lit(number)).write.mode("append")
        written.parquet(str(tmp_path / "written"))

    stream = spark.readStream.schema("page string, id long").option("maxFilesPerTrigger", 1)
    stream = stream.parquet(str(tmp_path / "read"))
    query = stream.writeStream.foreachBatch(write_batch).trigger(availableNow=True).start()
    query.awaitTermination()

    written = spark.read.parquet(str(tmp_path / "written")).toPandas()
    assert sorted(written["id"]) == list(range(4 * ROWS))
    sizes = written.groupby(["batch", "worker"]).size().groupby("batch").max() * WORKERS / ROWS
    assert sizes[[0, 1, 3]].max() < 1.05
    assert sizes[2] > 1.5  # the first batch with the new hot key


def jobs(spark, group, call):
    """Return the number of jobs that Spark runs for a call."""
    spark.sparkContext.setJobGroup(group, group)
    try:
        call()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.classic_only(reason="it counts jobs through the SparkContext")
def test_after_the_first_batch_a_balancer_needs_no_extra_jobs(spark, warm):
    """Spark counts the rows while it moves them."""
    batch = rows(spark, "hot")
    plain = batch.repartition(WORKERS, "page")
    assert warm.plan.splits
    without = jobs(spark, "without", lambda: write(plain))
    for turn in range(2):
        assert without == jobs(spark, f"with {turn}", lambda: write(warm.repartition(batch)))
    assert 0 == jobs(spark, "planning", lambda: warm.repartition(batch))


@pytest.mark.parametrize("buckets", [4, 333, 8192])
def test_counts_are_exact(spark, buckets):
    """The sketch gives the counts of a separate pass, also for null keys and few buckets."""
    key = "if(id % 5 = 0, null, id * id) AS page"
    batch = spark.range(3_000).selectExpr(key, "id")
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(buckets=buckets, decay=0))
    balancer.repartition(batch.where("id < 10"))
    expected = bucket_counts(batch, Key(("page",), buckets)).tolist()
    assert expected == learned_counts(balancer, batch).tolist()


def test_several_actions_count_once(spark, warm):
    """Spark keeps the counts of the first action, and its shuffle reads all rows."""
    batch = rows(spark, "other", number=3_000)
    balanced = warm.repartition(batch)
    assert 1 == len(balanced.limit(1).collect())
    assert 3_000 == balanced.count() == balanced.select("id").distinct().count()
    warm.repartition(batch)
    assert 3_000 == warm.plan.counts.sum()


def test_a_cached_batch_is_counted_once(spark, warm):
    """The batch may be cached before and after the balancer."""
    batch = rows(spark, "other", number=3_000).cache()
    balanced = warm.repartition(batch).cache()
    assert 3_000 == balanced.count() == balanced.count()
    warm.repartition(batch)
    assert 3_000 == warm.plan.counts.sum()
    balanced.unpersist()
    batch.unpersist()


def test_a_balanced_batch_has_the_same_rows_in_equal_partitions(spark, warm):
    """This also holds for a batch that is counted while it moves."""
    batch = rows(spark, "hot", ROWS)
    balanced = warm.repartition(batch)
    assert batch.schema == balanced.schema
    assert sorted(batch.collect()) == sorted(balanced.collect())
    assert largest(balanced) < 1.05
    assert largest(batch.repartition(WORKERS, "page")) > 1.8


def test_capacities_and_salts_are_followed(spark):
    """A worker of three times the capacity gets three times the rows."""
    capacities = [3, 1, 1, 1]
    balancer = Balancer("page", workers=WORKERS, capacities=capacities, salt=["id"])
    batch = rows(spark, "hot")
    for _ in range(2):
        assert largest(balancer.repartition(batch)) == pytest.approx(WORKERS / 2, rel=0.04)
    with pytest.warns(UserWarning, match="equal rows stay in one partition; name columns"):
        Balancer("page", workers=WORKERS, salt=["page"]).repartition(batch)


@pytest.mark.usefixtures("impatient")
def test_a_batch_that_fails_or_never_runs_does_not_change_the_plan(spark, warm):
    """The next batch is planned from earlier counts."""
    before = warm.plan
    broken = rows(spark, "other").withColumn("id", F.raise_error(F.lit("broken")).cast("long"))
    with pytest.raises(Exception, match="broken"):
        write(warm.repartition(broken))
    for _ in range(2):
        balanced = warm.repartition(rows(spark, "hot"))
        assert before is warm.plan
    assert largest(balanced) < 1.05
    warm.repartition(rows(spark, "hot"))
    assert before == warm.plan
    assert ROWS == warm.plan.counts.sum()


@pytest.mark.usefixtures("impatient")
def test_batches_without_an_action_leak_no_threads_or_descriptors(spark, warm):
    """A later batch with an action is counted."""

    def held():
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    batch = rows(spark, "hot")
    for _ in range(3):
        warm.repartition(batch)
    threads, descriptors = held()
    for _ in range(50):
        warm.repartition(batch)
    until(lambda: held()[0] <= threads)
    assert held()[1] <= descriptors
    assert 3_000 == learned_counts(warm, rows(spark, "other", number=3_000)).sum()


@pytest.mark.usefixtures("impatient")
def test_an_empty_batch_does_not_change_the_plan(spark):
    """This holds for the first batch and for later ones."""
    empty = rows(spark, "hot").where("id < 0")
    balancer = Balancer("page", workers=WORKERS, salt=["id"])
    write(balancer.repartition(empty))
    assert 0 == balancer.plan.version
    balancer.repartition(rows(spark, "hot"))
    before = balancer.plan
    assert before.splits
    for no_rows in (empty, spark.createDataFrame([], empty.schema)):
        assert 0 == balancer.repartition(no_rows).count()
    balancer.repartition(empty)
    assert before is balancer.plan


def test_a_balancer_can_be_pickled(spark, warm):
    """A copy keeps the plan, but not a pending observation."""
    fresh = pickle.loads(pickle.dumps(Balancer("page", workers=WORKERS)))
    batch = rows(spark, "other")
    assert largest(fresh.repartition(batch)) < 1.05
    write(warm.repartition(batch))
    copy = pickle.loads(pickle.dumps(warm))
    assert warm.plan == copy.plan
    assert ROWS == learned_counts(copy, batch).sum()
    assert largest(copy.repartition(batch)) < 1.05


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"key": []}, ValueError, "key needs at least one column, got none"),
        ({"key": [3]}, TypeError, "key must be column names or Columns, got 3"),
        ({"key": [["page", "id"]]}, TypeError, "key: pass the columns one by one, 'page', 'id'"),
        ({"salt": []}, ValueError, "salt needs at least one column, got none"),
        ({"salt": "id"}, TypeError, "salt must be a list of column names, got 'id'"),
        ({"workers": 0}, ValueError, "workers must be a whole number, at least 1, got 0"),
        ({"routing": sy.Balance(buckets=3)}, ValueError, "buckets must be at least the number of"),
        ({"routing": sy.Planner(4).plan}, ValueError, "pass a Balance, not a RoutingPlan"),
        ({"routing": 0.1}, TypeError, "routing must be a Balance, got 0.1"),
        ({"capacities": [1]}, ValueError, "capacities must have one number for each of 4"),
    ],
)
def test_bad_settings_get_one_sentence(arguments, error, sentence):
    """The constructor raises the error."""
    settings = {"workers": WORKERS} | arguments
    with pytest.raises(error, match=sentence):
        Balancer(*settings.pop("key", ["page"]), **settings)


def test_bad_batches_get_one_sentence(spark, warm):
    """The error comes before any job starts, for the first batch and for later ones."""
    batch = rows(spark, "hot")
    stream = spark.readStream.format("rate").load()
    for balancer in (Balancer("page", workers=WORKERS), warm):
        for frame, sentence in [
            (
                batch.withColumn("page", F.create_map("id", "id")),
                "key: column 'page' is map<bigint,bigint>, which Spark cannot hash",
            ),
            (batch.drop("page"), "key: there is no column 'page'; the columns are id"),
            (
                batch.join(batch, "page"),
                "must differ in more than case; rename all but one of 'id', 'id'",
            ),
            (stream, "batch must be a micro-batch, got a streaming DataFrame; call repartition in"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                balancer.repartition(frame)
    with pytest.raises(ValueError, match="salt: there is no column 'offset'"):
        Balancer("page", workers=WORKERS, salt=["offset"]).repartition(batch)


def test_an_unknown_sketch_format_is_refused():
    """The balancer does not plan from numbers that it cannot interpret."""
    table = np.arange(4).astype(">i8").tobytes()
    assert [0, 1, 2, 3] == module._decoded(struct.pack(">iqiiq", 1, 6, 1, 4, 1) + table, 4).tolist()
    for header in [(2, 6, 1, 4, 1), (1, 6, 2, 4, 1), (1, 6, 1, 5, 1), (1, 6, 1, 4, 7)]:
        with pytest.raises(RuntimeError, match="writes count-min sketches in a format that"):
            module._decoded(struct.pack(">iqiiq", *header) + table, 4)
