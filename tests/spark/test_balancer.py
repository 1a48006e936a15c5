"""The micro-batches of a stream: balanced by what was seen before, with every row once."""

import os
import pickle
import struct
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark import balancer as module
from steelyard.spark.balancer import Balancer
from steelyard.spark.columns import Key
from steelyard.spark.repartitioning import bucket_counts
from tests.waiting import until

ROWS = 8_000
WORKERS = 4


def page(hot):
    """Half of the rows are of the hot page, the others of 3,000."""
    return f"if(id % 2 = 0, '{hot}', concat('page ', id * 7919 % 3000)) AS page"


def rows(spark, hot, start=0, number=ROWS):
    """A batch."""
    return spark.range(start, start + number, 1, 2).selectExpr(page(hot), "id")


def write(frame):
    """Run an action that needs every row."""
    frame.write.format("noop").mode("overwrite").save()


def largest(frame):
    """The largest partition, relative to an equal share."""
    sizes = frame.groupBy(F.spark_partition_id()).count().toArrow()["count"].to_numpy()
    return sizes.max() / sizes.sum() * WORKERS


def taught(balancer, frame):
    """What the balancer plans for after it has seen a frame, and an action has run."""
    write(balancer.repartition(frame))
    balancer.repartition(frame)
    return balancer.plan.counts


@pytest.fixture
def warm(spark):
    """A balancer that has seen a batch, and forgets it when it sees the next one."""
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(decay=0))
    write(balancer.repartition(rows(spark, "hot")))
    return balancer


@pytest.fixture
def impatient(monkeypatch):
    """Not to wait for a second for what will never come."""
    monkeypatch.setattr(module, "_PATIENCE", 0.1)


@pytest.mark.slow
def test_a_stream_stays_balanced_when_its_hot_key_changes(spark, tmp_path, request):
    """One batch after the change at the latest, with every row once."""
    # Through Spark Connect the steps of a micro-batch cannot be seen, so the salt has to be named.
    salt = ["id"] if request.config.getoption("--connect") else None
    for batch, hot in enumerate(["red", "red", "blue", "blue"]):
        there = tmp_path / "read" / f"batch {batch}.parquet"
        there.parent.mkdir(exist_ok=True)
        pq.write_table(rows(spark, hot, ROWS * batch).toArrow(), there)
        os.utime(there, (1e9 + batch, 1e9 + batch))
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(decay=0), salt=salt)

    def write_batch(batch, number):
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
    assert sizes[2] > 1.5  # nobody could know


def jobs(spark, group, call):
    """How many jobs Spark runs for a call."""
    spark.sparkContext.setJobGroup(group, group)
    try:
        call()
        return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


@pytest.mark.classic_only(reason="it counts jobs through the SparkContext")
def test_after_the_first_batch_there_are_no_more_jobs_than_without(spark, warm):
    """Counts are taken from the rows as they flow."""
    batch = rows(spark, "hot")
    plain = batch.repartition(WORKERS, "page")
    assert warm.plan.splits
    without = jobs(spark, "without", lambda: write(plain))
    for turn in range(2):
        assert without == jobs(spark, f"with {turn}", lambda: write(warm.repartition(batch)))
    assert 0 == jobs(spark, "planning", lambda: warm.repartition(batch))


@pytest.mark.parametrize("buckets", [4, 333, 8192])
def test_counts_are_exact(spark, buckets):
    """By the sketch as by a pass of its own; also for null keys, and whatever their number."""
    key = "if(id % 5 = 0, null, id * id) AS page"
    batch = spark.range(3_000).selectExpr(key, "id")
    balancer = Balancer("page", workers=WORKERS, routing=sy.Balance(buckets=buckets, decay=0))
    balancer.repartition(batch.where("id < 10"))
    expected = bucket_counts(batch, Key(("page",), buckets)).tolist()
    assert expected == taught(balancer, batch).tolist()


def test_several_actions_count_once(spark, warm):
    """Spark keeps what the first has seen; the shuffle makes it see everything."""
    batch = rows(spark, "other", number=3_000)
    balanced = warm.repartition(batch)
    assert 1 == len(balanced.limit(1).collect())
    assert 3_000 == balanced.count() == balanced.select("id").distinct().count()
    warm.repartition(batch)
    assert 3_000 == warm.plan.counts.sum()


def test_a_cached_batch_is_counted_once(spark, warm):
    """Of the frame that the balancer gives, as of the one that it gets."""
    batch = rows(spark, "other", number=3_000).cache()
    balanced = warm.repartition(batch).cache()
    assert 3_000 == balanced.count() == balanced.count()
    warm.repartition(batch)
    assert 3_000 == warm.plan.counts.sum()
    balanced.unpersist()
    batch.unpersist()


def test_the_balance_follows_the_plan_and_rows_are_the_same(spark, warm):
    """Also in a batch that is only observed."""
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
def test_a_batch_that_fails_or_never_runs_teaches_nothing(spark, warm):
    """The next one is planned from what is known."""
    before = warm.plan
    broken = rows(spark, "other").withColumn("id", F.raise_error(F.lit("broken")).cast("long"))
    with pytest.raises(PySparkException, match="broken"):
        write(warm.repartition(broken))
    for _ in range(2):
        balanced = warm.repartition(rows(spark, "hot"))
        assert before is warm.plan
    assert largest(balanced) < 1.05
    warm.repartition(rows(spark, "hot"))
    assert before == warm.plan
    assert ROWS == warm.plan.counts.sum()


@pytest.mark.usefixtures("impatient")
def test_batches_without_an_action_leave_nothing_behind(spark, warm):
    """No thread and no descriptor waits for their counts; a batch with an action is counted."""

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
    assert 3_000 == taught(warm, rows(spark, "other", number=3_000)).sum()


@pytest.mark.usefixtures("impatient")
def test_an_empty_batch_changes_nothing(spark):
    """At the beginning there is still nothing known after it; later the plan stays."""
    empty = rows(spark, "hot").where("id < 0")
    balancer = Balancer("page", workers=WORKERS, salt=["id"])
    write(balancer.repartition(empty))
    assert 0 == balancer.plan.version
    balancer.repartition(rows(spark, "hot"))
    before = balancer.plan
    assert before.splits
    for nothing in (empty, spark.createDataFrame([], empty.schema)):
        assert 0 == balancer.repartition(nothing).count()
    balancer.repartition(empty)
    assert before is balancer.plan


def test_a_balancer_can_be_sent_elsewhere(spark, warm):
    """New, or with a plan; what is being observed stays here."""
    fresh = pickle.loads(pickle.dumps(Balancer("page", workers=WORKERS)))
    batch = rows(spark, "other")
    assert largest(fresh.repartition(batch)) < 1.05
    write(warm.repartition(batch))
    copy = pickle.loads(pickle.dumps(warm))
    assert warm.plan == copy.plan
    assert ROWS == taught(copy, batch).sum()
    assert largest(copy.repartition(batch)) < 1.05


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"key": []}, ValueError, "key needs at least one column, got none"),
        ({"key": [3]}, TypeError, "key must be names of columns, got 3"),
        ({"key": [["page", "id"]]}, TypeError, "key: name the columns one by one, 'page', 'id'"),
        ({"salt": []}, ValueError, "salt needs at least one column, got none"),
        ({"salt": "id"}, TypeError, "salt must be a list of names of columns, got 'id'"),
        ({"workers": 0}, ValueError, "workers must be a whole number, at least 1, got 0"),
        ({"routing": sy.Balance(buckets=3)}, ValueError, "buckets must be at least the number of"),
        ({"routing": sy.Planner(4).plan}, ValueError, "pass a Balance, not a RoutingPlan"),
        ({"routing": 0.1}, TypeError, "routing must be a Balance, got 0.1"),
        ({"capacities": [1]}, ValueError, "capacities must be one number for each of 4"),
    ],
)
def test_bad_settings_get_a_sentence(arguments, error, sentence):
    """Before there is any batch."""
    settings = {"workers": WORKERS} | arguments
    with pytest.raises(error, match=sentence):
        Balancer(*settings.pop("key", ["page"]), **settings)


def test_bad_batches_get_a_sentence(spark, warm):
    """Before any job starts, and the same before and after the first batch."""
    batch = rows(spark, "hot")
    stream = spark.readStream.format("rate").load()
    for balancer in (Balancer("page", workers=WORKERS), warm):
        for frame, sentence in [
            (
                batch.withColumn("page", F.create_map("id", "id")),
                "key: column 'page' is map<bigint,bigint>, which has no hash",
            ),
            (batch.drop("page"), "key: there is no column 'page'; the columns are id"),
            (batch.join(batch, "page"), "more than one column named id; rename them first"),
            (stream, "takes the batches of a stream, not the stream: call repartition in the"),
        ]:
            with pytest.raises(ValueError, match=sentence):
                balancer.repartition(frame)
    with pytest.raises(ValueError, match="salt: there is no column 'offset'"):
        Balancer("page", workers=WORKERS, salt=["offset"]).repartition(batch)


def test_an_unknown_form_of_sketch_is_refused():
    """Rather than to plan from numbers that mean something else."""
    table = np.arange(4).astype(">i8").tobytes()
    assert [0, 1, 2, 3] == module._decoded(struct.pack(">iqiiq", 1, 6, 1, 4, 1) + table, 4).tolist()
    for header in [(2, 6, 1, 4, 1), (1, 6, 2, 4, 1), (1, 6, 1, 5, 1), (1, 6, 1, 4, 7)]:
        with pytest.raises(RuntimeError, match="writes count-min sketches in another way"):
            module._decoded(struct.pack(">iqiiq", *header) + table, 4)
