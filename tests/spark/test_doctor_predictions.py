"""What the doctor predicts, and what it recommends, happens on Spark."""

import numpy as np
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.doctor.adaptive import MB, AdaptiveExecution
from steelyard.spark.examining import key_counts

JOIN_SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64MB",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "256MB",
}


@pytest.fixture
def join_settings(spark):
    """Use Spark's defaults for joins, and restore the settings of the tests afterwards."""
    before = {name: spark.conf.get(name, None) for name in JOIN_SETTINGS}
    for name, value in JOIN_SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture(scope="module")
def visits(spark):
    """Rows of which a third have the same key, in eight partitions."""
    return spark.range(0, 200_000, 1, 8).selectExpr(
        "if(id % 3 = 0, 'hot', concat('page ', pmod(hash(id), 5000))) AS page",
        "id AS visit",
        "md5(string(id)) AS session",
        "sha2(string(id), 256) AS text",
    )


@pytest.fixture(scope="module")
def titles(spark):
    """One row for each key of the visits."""
    return spark.range(-1, 5000).selectExpr(
        "if(id < 0, 'hot', concat('page ', id)) AS page", "id AS title"
    )


def sizes(frame, partitions):
    """Count the rows of each partition."""
    found = frame.groupBy(F.spark_partition_id().alias("part")).count().collect()
    rows = np.zeros(partitions, int)
    rows[[part for part, _ in found]] = [count for _, count in found]
    return rows.tolist()


@pytest.mark.parametrize("partitions", [5, 20, 200])
@pytest.mark.parametrize(
    "key", ["concat('page ', id % 700)", "id % 700", "unhex(hex(id % 700))", "double(id % 700)"]
)
def test_partitions_by_key_are_those_of_sparks_repartition(spark, key, partitions):
    """This holds for every counted number of partitions, and for divisors of it."""
    rows = spark.range(0, 20_000, 1, 4).selectExpr(f"{key} AS key", "id")
    counts = key_counts(rows, ("key",), workers=5)
    assert sizes(rows.repartition(partitions, "key"), partitions) == (
        counts.partitions(partitions).tolist()
    )


def test_the_recommended_number_of_partitions_gives_the_predicted_tasks(spark):
    """The recommended code runs, and its largest task has the predicted share."""
    page = "int(pow((id * 7919 % 40000) / 40000, 2) * 2000) AS page"
    df = spark.range(0, 40_000, 1, 4).selectExpr(page, "id")
    estimates = sy.doctor.Estimates(row_time=10_000)
    found = sy.doctor.examine(df, "page", workers=24, estimates=estimates)
    more = next(cost for cost in found.costs if cost.strategy.name == "kg-more")
    assert f"use {more.tasks} partitions" == found.advice.what
    names = {"df": df, "function": lambda batches: batches, "schema": df.schema}
    done = eval(found.advice.code, names)  # noqa: S307  # the doctor wrote it
    rows = sizes(done, more.tasks)
    assert sum(rows) == 40_000
    assert max(rows) / 40_000 == more.largest_share


def joined_sizes(joined):
    """Count the rows of each task of a join; all columns pass through its shuffle."""
    columns = [F.max(name) for name in joined.columns]
    return [
        row["rows"]
        for row in joined.groupBy(F.spark_partition_id())
        .agg(F.count(F.lit(1)).alias("rows"), *columns)
        .collect()
    ]


@pytest.mark.parametrize(("advisory", "threshold"), [(1, 256), (1, 2), (4, 4), (64, 256)], ids=str)
def test_adaptive_execution_makes_the_predicted_tasks(
    spark, join_settings, visits, titles, advisory, threshold
):
    """Spark merges and splits partitions nearly as predicted.

    The bytes of a row are an estimate, and Spark itself knows each size only within 10 %.
    """
    for name, size in (
        ("advisoryPartitionSizeInBytes", advisory),
        ("skewJoin.skewedPartitionThresholdInBytes", threshold),
    ):
        spark.conf.set(f"spark.sql.adaptive.{name}", f"{size}MB")
    found = sy.doctor.examine(visits, "page", workers=2, work="join")
    messages = key_counts(visits, ("page",), workers=2).partitions(200)
    adaptive = AdaptiveExecution(advisory * MB, threshold * MB)
    sized = (messages * found.row_bytes).tolist()
    reads = adaptive.reads(sized, slots=2, maps=8)
    expected = [messages[read.first : read.end].sum() * read.part for read in reads]
    real = joined_sizes(visits.join(titles, "page"))
    assert sum(real) == 200_000
    assert len(real) == pytest.approx(len(expected), rel=0.35, abs=1)
    assert max(real) == pytest.approx(max(expected), rel=0.25)


def test_the_recommended_settings_split_the_hot_key(spark, join_settings, visits, titles):
    """The recommended code runs on Spark, and its tasks are about the predicted ones."""
    estimates = sy.doctor.Estimates(row_time=1000)
    found = sy.doctor.examine(visits, "page", workers=8, work="join", estimates=estimates)
    assert "let adaptive execution make smaller tasks" == found.advice.what
    *before, last = found.advice.code.split("\n")
    exec("\n".join(before), {"spark": spark})  # noqa: S102
    real = joined_sizes(eval(last, {"df": visits, "other": titles}))  # noqa: S307
    small = next(cost for cost in found.costs if cost.strategy.name == "adaptive-small")
    assert sum(real) == 200_000
    assert max(real) / 200_000 == pytest.approx(small.largest_share, rel=0.3)
    assert max(real) < 200_000 / 8 < 200_000 / 3


def test_the_bytes_of_a_row_are_measured(spark, visits):
    """Texts count with their lengths; a frame without rows has no measure."""
    estimates = sy.doctor.examine(visits, "page", 8, work="join").row_bytes
    # 8 for nulls, 8 for each of 4 columns, 16 for a page (or 8 for hot), 32 and 64 for the texts
    assert 0.6 * 145 <= estimates <= 0.6 * 152
    nested = visits.selectExpr("page", "array(session, session) AS list", "binary(text) AS raw")
    assert sy.doctor.examine(nested, "page", 8, work="join").row_bytes > estimates
    given = sy.doctor.Estimates(row_bytes=77)
    assert sy.doctor.examine(visits, "page", 8, work="join", estimates=given).row_bytes == 77
