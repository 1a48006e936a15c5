"""`balanced` counts, plans and routes inside the query, and asks Spark nothing before it runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.retries.requests import repeated_by_request
from steelyard.spark.versions.supported import is_of_connect
from tests.spark.pipeline_job import ROWS as IN_PIPELINE
from tests.spark.query_plans import explained

pytestmark = pytest.mark.needs_spark("4.0", reason="DataFrame.scalar")

ROWS, WORKERS = 40_000, 4
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def visits(spark):
    """Rows of which half have one key; the others have 1,000 keys."""
    hot = F.when(F.col("id") % 2 == 0, "hot")
    key = hot.otherwise(F.concat(F.lit("page "), (F.col("id") * 7919 % 2000).cast("string")))
    return spark.range(0, ROWS, 1, 3).select(key.alias("page"), "id")


def placed(frame):
    """Return the ids of each partition."""
    rows = frame.select("id", F.spark_partition_id().alias("p")).collect()
    found = {}
    for row in rows:
        found.setdefault(row["p"], []).append(row["id"])
    return {partition: sorted(ids) for partition, ids in found.items()}


def fractions(frame, workers=WORKERS):
    """Return the share of the rows of each partition; fail unless every row is there once."""
    found = placed(frame)
    assert list(range(ROWS)) == sorted(i for ids in found.values() for i in ids)
    return [len(found.get(p, [])) / ROWS for p in range(workers)]


def test_each_row_is_where_repartition_sends_it(visits):
    """The plan in the query is the plan of `sy.plan`, also for the rows of a hot key."""
    even = visits.transform(sy.balanced("page", workers=WORKERS, salt=["id"]))
    assert ["page", "id"] == even.columns
    assert placed(sy.repartition(visits, WORKERS, "page", salt=["id"])) == placed(even)
    assert max(fractions(even)) < 1.03 / WORKERS


def test_the_settings_of_repartition_apply(visits):
    """Capacities, a weight, a sample and expressions as keys."""
    wide = sy.balanced("page", workers=4, capacities=[3, 1, 2, 2], salt=["id"])
    assert [0.375, 0.125, 0.25, 0.25] == pytest.approx(fractions(visits.transform(wide)), abs=0.01)
    heavy = visits.withColumn("kilos", F.when(F.col("page") == "hot", 3).otherwise(1))
    routing = sy.Balance(epsilon=0.02, buckets=1024)
    made = heavy.transform(
        sy.balanced(F.upper("page"), workers=4, weight="kilos", salt=["id"], routing=routing)
    )
    kilos = made.groupBy(F.spark_partition_id()).agg(F.sum("kilos").alias("sum")).collect()
    assert max(row["sum"] for row in kilos) < 1.04 * 2 * ROWS / 4
    assert ["page", "id", "kilos"] == made.columns
    sampled = sy.balanced("page", workers=4, routing=sy.Balance(sample=0.3))
    assert max(fractions(visits.transform(sampled))) < 1.1 / 4


KEYS = {
    "page": ["PAGE", lambda: F.col("page"), lambda: F.col("Page").alias("x")],
    "user.id": ["USER.Id", lambda: F.col("user.id"), lambda: F.col("user")["id"]],
    "`a.b`": [lambda: F.col("`A.b`")],
}
"""Keys, and other forms of them."""


@pytest.mark.parametrize("key", KEYS)
def test_all_forms_of_a_key_have_the_same_result(visits, key):
    """Names in another case, fields and expressions mean the same as elsewhere."""
    wide = visits.select("*", F.struct("id").alias("user"), F.col("page").alias("a.b"))
    settings = {"workers": WORKERS, "salt": ["ID"], "weight": "User.id"}
    expected = placed(wide.transform(sy.balanced(key, **settings)))
    assert placed(sy.repartition(wide, WORKERS, key, salt=["id"], weight="user.id")) == expected
    for form in KEYS[key]:
        made = sy.balanced(form if isinstance(form, str) else form(), **settings)
        found = wide.transform(made)
        assert wide.columns == found.columns
        assert expected == placed(found)
    assert expected == placed(wide.transform(sy.balanced(key, **settings | {"salt": ["user.id"]})))


def test_rows_without_rows_or_keys(spark, visits):
    """An empty frame stays empty, one worker gets all rows, and null is a key."""
    even = sy.balanced("page", workers=WORKERS)
    assert [] == visits.where(F.col("id") < 0).transform(even).collect()
    assert [1.0] == fractions(visits.transform(sy.balanced("page", workers=1)), 1)
    nulls = visits.withColumn("page", F.lit(None).cast("string"))
    assert max(fractions(nulls.transform(even))) < 1.03 / WORKERS


def test_a_view_plans_again_for_each_query(spark, tmp_path):
    """A view of the result follows the rows at the time of the query."""
    file = tmp_path / "keys"
    file.write_text("1000")

    def read(batches):
        keys = int(file.read_text())
        for batch in batches:
            pages = [str(number % keys) for number in batch["id"].to_pylist()]
            yield pa.RecordBatch.from_pydict({"page": pages, "id": batch["id"]})

    rows = spark.range(0, ROWS, 1, 2).mapInArrow(read, "page string, id long")
    rows.transform(sy.balanced("page", workers=WORKERS, salt=["id"])).createOrReplaceTempView(
        "even"
    )
    try:
        assert max(fractions(spark.sql("SELECT * FROM even"))) < 1.03 / WORKERS
        file.write_text("1")
        assert max(fractions(spark.sql("SELECT * FROM even"))) < 1.03 / WORKERS
    finally:
        spark.catalog.dropTempView("even")


def test_the_query_counts_once(visits):
    """The plan has one subquery, and stays short."""
    made = visits.transform(sy.balanced("page", workers=24, salt=["id"]))
    text = explained(made, "formatted")
    assert 1 == text.count("Subquery:")
    assert len(text) - len(explained(visits, "formatted")) < 8000


def test_balanced_rows_can_be_split_again(visits):
    """The subquery leaves no doubt about the columns of the rows."""
    even = visits.transform(sy.balanced("page", workers=WORKERS, salt=["id"]))
    assert {} == repeated(even).doubts
    again = even.transform(sy.balanced("page", workers=3, salt=["id"]))
    assert max(fractions(again, 3)) < 1.03 / 3


def test_a_salt_that_a_retry_repeats_is_required(spark, visits):
    """Without known columns, the call asks for `salt`, and accepts the word of the user."""
    doubtful = visits.mapInArrow(lambda batches: batches, visits.schema)
    even = sy.balanced("page", workers=WORKERS)
    sentence = "salt: name columns that are deterministic across task retries, such as an id; "
    with pytest.raises(ValueError, match=sentence):
        doubtful.transform(even)
    trusted = doubtful.transform(sy.balanced("page", workers=WORKERS, salt=["id"]))
    assert max(fractions(trusted)) < 1.03 / WORKERS


PROVEN = [
    lambda spark, path: spark.read.parquet(path),
    lambda spark, path: (
        spark.range(9).withColumn("page", F.upper(F.lit("a"))).where(F.col("page") != "b")
    ),
    lambda spark, path: spark.range(9).where((F.col("id") % 2 == 0) | F.col("id").isin(3, 5)),
    lambda spark, path: spark.range(9).union(spark.range(5)).repartition(3).sort("id"),
    lambda spark, path: spark.range(9).join(spark.range(5), "id").withColumnRenamed("id", "n"),
    lambda spark, path: spark.createDataFrame([("a", 1)], "page string, id long").drop("page"),
    lambda spark, path: spark.range(9).select((F.col("id") + 1).cast("int").alias("n"), "*"),
]
"""Frames whose rows a retry repeats, as their requests show."""

UNPROVEN = [
    lambda spark, path: spark.read.table("visits"),
    lambda spark, path: spark.sql("SELECT 1 AS id"),
    lambda spark, path: spark.range(9).selectExpr("id"),
    lambda spark, path: spark.range(9).withColumn("n", F.rand()),
    lambda spark, path: spark.range(9).where(F.rand() < 0.5),
    lambda spark, path: spark.range(9).sort(F.rand()),
    lambda spark, path: spark.range(9).withColumn("n", F.udf(lambda x: x)("id")),
    lambda spark, path: spark.range(9).limit(5),
    lambda spark, path: spark.range(9).sample(0.5),
    lambda spark, path: spark.range(9).groupBy("id").agg(F.first("id")),
    lambda spark, path: spark.range(9).dropDuplicates(["id"]),
    lambda spark, path: spark.range(9).intersect(spark.range(5)),
    lambda spark, path: spark.range(9).union(spark.range(5).limit(1)),
    lambda spark, path: spark.range(9).join(spark.range(5).limit(1), "id"),
    lambda spark, path: spark.range(9).mapInArrow(lambda batches: batches, "id long"),
    lambda spark, path: spark.range(9).transform(sy.balanced("id", workers=2)),
]
"""Frames whose requests show too little."""


@pytest.mark.parametrize("make", PROVEN)
def test_a_request_proves_that_rows_are_repeated(spark, tmp_path, make):
    """Sources, and steps that work row by row with known functions."""
    assert repeated_by_request(of_connect(spark, make, tmp_path))


@pytest.mark.parametrize("make", UNPROVEN)
def test_a_request_proves_nothing_else(spark, tmp_path, make):
    """Views, SQL, random numbers, and steps that depend on the order of rows."""
    assert not repeated_by_request(of_connect(spark, make, tmp_path))


def of_connect(spark, make, folder):
    """Return a frame; classic Spark would look for its files and tables at once."""
    if not is_of_connect(spark):
        pytest.skip("only frames of Spark Connect have a request")
    return make(spark, str(folder))


def test_bad_input_is_one_sentence(spark, visits):
    """Settings are refused before there is a frame; streams and other frames when it is there."""
    wrong = {
        "key needs at least one column, got none": lambda: sy.balanced(workers=4),
        "workers must be a whole number": lambda: sy.balanced("page", workers=0),
        "salt must be a list of column": lambda: sy.balanced("page", workers=4, salt="id"),
        "capacities must have one num": lambda: sy.balanced("page", workers=4, capacities=[1]),
        "this call makes its own plan": lambda: sy.balanced(
            "page", workers=4, routing=sy.Planner(4).plan
        ),
    }
    for sentence, call in wrong.items():
        with pytest.raises(ValueError if "list" not in sentence else TypeError, match=sentence):
            call()
    with pytest.raises(TypeError, match="frame must be a Spark DataFrame, got list"):
        sy.balanced("page", workers=4)([1])
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ValueError, match="and a stream has no end; use sy"):
        stream.transform(sy.balanced("value", workers=4))


def test_negative_weights_end_the_query(visits):
    """The task that plans refuses them with one sentence."""
    made = visits.selectExpr("page", "id", "-1 AS kilos").transform(
        sy.balanced("page", workers=4, weight="kilos", salt=["id"])
    )
    with pytest.raises(Exception, match="weight: the column must hold numbers of at least 0"):
        made.collect()


@pytest.mark.classic_only(reason="Spark Connect shows no columns before the query runs")
def test_columns_are_checked_where_they_are_known(visits):
    """Classic Spark has analyzed the frame, so wrong columns are refused at once."""
    with pytest.raises(ValueError, match="key: there is no column 'pages'; the columns are page"):
        visits.transform(sy.balanced("pages", workers=4))
    with pytest.raises(ValueError, match="weight: column 'page' must hold numbers, got string"):
        visits.transform(sy.balanced("page", workers=4, weight="page"))
    with pytest.raises(ValueError, match=r"key: .*rand\(.*comes from rand\(\); its value may"):
        visits.transform(sy.balanced(F.rand(), workers=4, salt=["id"]))
    with pytest.raises(ValueError, match="must be computed from one row, and aggregates"):
        visits.transform(sy.balanced(F.sum("id"), workers=4, salt=["id"]))


@pytest.mark.slow
@pytest.mark.needs_spark("4.1", reason="Spark Declarative Pipelines")
def test_a_declarative_pipeline_balances_a_table(tmp_path):
    """Spark's own runner defines and runs a pipeline with a balanced table."""
    # If these tests run on Spark Connect, its variables must not affect the server of the pipeline.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.pipeline_job", str(tmp_path)],
        check=False,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert 0 == done.returncode, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (4, IN_PIPELINE) == (len(found), sum(row[1] for row in found))
    assert sum(range(IN_PIPELINE)) == sum(row[2] for row in found)
    assert max(row[1] for row in found) < 1.05 * IN_PIPELINE / 4
