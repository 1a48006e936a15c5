"""`group_by` runs Python functions and mergeable aggregators on balanced workers."""

import datetime
import decimal
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.retries.repeated import repeats_its_order

ROWS = 40_000


@pytest.fixture(scope="module")
def skewed(spark):
    """Return rows of a scan: half of them have one key, the others one of 2,000."""
    hot = F.when(F.col("id") % 2 == 0, F.lit("hot"))
    key = hot.otherwise(F.concat(F.lit("page "), (F.col("id") * 7919 % 2000).cast("string")))
    return spark.range(0, ROWS, 1, 3).select(key.alias("page"), "id")


def sizes(table):
    """Return the number of rows and their ids."""
    return pa.table({"rows": [table.num_rows], "ids": [table["id"].to_pylist()]})


SIZES = "rows long, ids array<long>"


def worked(grouped):
    """Return the ids of each task; check that every id occurs once."""
    found = grouped.map_arrow(sizes, SIZES).select("rows", "ids", F.spark_partition_id()).collect()
    by_task = {}
    for rows, ids, task in found:
        assert rows == len(ids)
        by_task.setdefault(task, []).extend(ids)
    assert sorted(i for ids in by_task.values() for i in ids) == list(range(ROWS))
    return by_task


@pytest.mark.parametrize("shuffled", [False, True], ids=["scan", "shuffle"])
def test_workers_get_equal_parts(skewed, shuffled):
    """No worker has more than 3 % above its share, with a plan per read or of all rows."""
    frame = skewed.repartition(2) if shuffled else skewed
    by_task = worked(sy.group_by(frame, "page", workers=4))
    assert len(by_task) == 4
    assert max(map(len, by_task.values())) <= 1.03 * ROWS / 4


def test_plans_weights_and_capacities_are_followed(skewed):
    """They have the same effect as in `repartition`."""
    plan = sy.plan(skewed, "page", workers=3, capacities=[2, 1, 1])
    by_task = worked(sy.group_by(skewed, "page", workers=3, routing=plan))
    assert len(by_task[0]) == pytest.approx(ROWS / 2, rel=0.03)
    by_task = worked(sy.group_by(skewed, "page", workers=2, capacities=[3, 1], tasks_per_worker=2))
    assert len(by_task[0]) + len(by_task[2]) == pytest.approx(ROWS * 3 / 4, rel=0.03)
    heavy = skewed.withColumn("cost", F.when(F.col("id") < ROWS / 10, 9).otherwise(1))
    by_task = worked(sy.group_by(heavy, "page", workers=4, weight="cost"))
    costs = [sum(9 if i < ROWS / 10 else 1 for i in ids) for ids in by_task.values()]
    assert max(costs) <= 1.05 * sum(costs) / 4


@pytest.mark.parametrize("name", ["porc", "pkg"])
def test_a_scheme_routes_in_every_source(skewed, name):
    """Source tasks route like the paper's sources; PKG leaves the hot key on two workers."""
    by_task = worked(sy.group_by(skewed, "page", workers=4, routing=sy.schemes.named(name)))
    largest = max(map(len, by_task.values()))
    if name == "porc":
        assert largest <= 1.05 * ROWS / 4
    else:
        assert largest >= ROWS / 4


def test_light_keys_stay_whole(skewed):
    """The hot key is listed; every other key is in one table of one task."""
    for frame in (skewed, skewed.repartition(2)):
        grouped = sy.group_by(frame, "page", workers=4, whole_light_keys=True)
        assert [("hot",)] == [tuple(row) for row in grouped.hot_keys]

        def keys(table):
            return pa.table({"page": table["page"].unique()})

        seen = grouped.map_arrow(keys, "page string").groupBy("page").count()
        counts = {row["page"]: row["count"] for row in seen.collect()}
        assert counts.pop("hot") > 1
        assert set(counts.values()) == {1}
        assert len(counts) == 1000
        assert max(map(len, worked(grouped).values())) <= 1.05 * ROWS / 4


def test_light_keys_stay_whole_in_the_bucket_of_a_hot_key(spark):
    """With few buckets, hot and light keys share them; only hot keys are split."""
    frame = spark.range(0, ROWS, 1, 2).selectExpr(
        "if(id % 2 = 0, -1, if(id % 4 = 1, -2, id % 16)) AS page", "id"
    )
    grouped = sy.group_by(
        frame, "page", workers=8, whole_light_keys=True, routing=sy.Balance(buckets=8)
    )
    assert [-1, -2] == [row["page"] for row in grouped.hot_keys]  # the most frequent first
    lines = [line.split() for line in repr(grouped.hot_keys).splitlines()[2:]]
    assert [["-1", "50.00", "%"], ["-2", "25.00", "%"]] == lines
    keys = grouped.map_arrow(lambda t: pa.table({"page": t["page"].unique()}), "page long")
    counts = {row["page"]: row["count"] for row in keys.groupBy("page").count().collect()}
    assert all((n > 1) == (page < 0) for page, n in counts.items())
    uniform = sy.group_by(spark.range(100), "id", workers=2, whole_light_keys=True)
    assert [] == uniform.hot_keys


def test_aggregates_equal_those_of_spark(skewed):
    """Counts, sums, means and extremes have the names, types and values of `groupBy`."""
    ours = sy.group_by(skewed, "page", workers=3).aggregate(
        sy.Count(), sy.Sum("id"), sy.Mean("id"), sy.Min("id"), sy.Max("id")
    )
    sparks = skewed.groupBy("page").agg(
        F.count("*").alias("count"), F.sum("id"), F.avg("id"), F.min("id"), F.max("id")
    )
    assert ours.columns == sparks.columns
    assert [f.dataType for f in ours.schema] == [f.dataType for f in sparks.schema]
    assert sorted(ours.collect()) == sorted(sparks.collect())


def test_sketches_and_user_aggregators_merge(skewed):
    """A sketch, a set and a user-defined aggregator give the right results."""
    small = skewed.where("id < 4000").repartition(2)
    ours = sy.group_by(small, "page", workers=2).aggregate(
        sy.ApproxDistinct("id"), sy.CollectSet("id"), Longest("page")
    )
    found = {row["page"]: row for row in ours.collect()}
    assert found["hot"][1] == pytest.approx(2000, rel=0.05)
    assert sorted(found["hot"][2]) == list(range(0, 4000, 2))
    assert all(len(page) == row[3] for page, row in found.items())


class Longest(sy.Aggregator):
    """A user-defined aggregator: the length of the longest text."""

    function = "longest"

    def state(self, schema):
        """Return the type of the state."""
        return {"length": pa.int64()}

    def add(self, batch, groups):
        """Return the largest length of each group."""
        lengths = pc.utf8_length(batch.column(self.column)).cast(pa.int64())
        return [groups.reduce(lengths, "max")]

    def merge(self, states, groups):
        """Return the largest of several states."""
        return [groups.reduce(states[0], "max")]

    def result(self, states):
        """Return the state."""
        return states[0]

    def result_type(self, schema):
        """Return the type of the result."""
        return pa.int64()


TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "hot", "hot", "hot"]))
NUMBERS = st.one_of(st.none(), st.integers(-5, 5))
MOMENTS = st.one_of(
    st.none(), st.integers(0, 3).map(lambda day: datetime.datetime(2020, 1, 1 + day))
)
AMOUNTS = st.one_of(st.none(), st.integers(-999, 999).map(lambda n: decimal.Decimal(n) / 100))
BYTES = st.one_of(st.none(), st.binary(max_size=2))
FRAMES = st.lists(st.tuples(TEXTS, NUMBERS, MOMENTS, AMOUNTS, BYTES, st.floats()), max_size=40)
KINDS = "t string, n int, m timestamp_ntz, d decimal(5,2), b binary, f double"


@given(rows=FRAMES, key=st.sampled_from([["t"], ["n"], ["m", "t"], ["d"], ["b", "n"], ["f"]]))
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
def test_random_frames_aggregate_as_in_spark(spark, rows, key):
    """The results are those of Spark for nulls, empty frames, NaN, both zeros and any key type."""
    made = spark.createDataFrame(rows, KINDS)
    counted = made.repartition(2)
    sparks = made.groupBy(*key).agg(F.count("*").alias("count"), F.sum("n"), F.max("d"))
    expected = sorted(map(repr, sparks.collect()))
    with TemporaryDirectory() as folder:
        made.coalesce(1).write.mode("overwrite").parquet(folder)
        scanned = spark.read.parquet(folder)
        assert repeats_its_order(scanned)
        assert not repeats_its_order(counted)
        for frame in (counted, scanned):
            grouped = sy.group_by(frame, *key, workers=2)
            ours = grouped.aggregate(sy.Count(), sy.Sum("n"), sy.Max("d"))
            assert ours.schema.simpleString() == sparks.schema.simpleString()
            assert expected == sorted(map(repr, ours.collect()))


def test_functions_get_nested_values(spark):
    """A function gets every column unchanged, also maps and lists."""
    frame = spark.range(0, 100, 1, 2).selectExpr(
        "id % 3 AS k", "id", "array(id, null) AS l", "map('a', id) AS m", "struct(id AS x) AS s"
    )
    for given_frame in (frame, frame.repartition(2)):
        same = sy.group_by(given_frame, "k", workers=2).map_arrow(lambda t: t, frame.schema)
        assert sorted(same.collect(), key=lambda r: r["id"]) == frame.sort("id").collect()


def test_equal_rows_are_split_on_a_scan_and_warned_of_elsewhere(spark):
    """Rows are split by position only where a task retry repeats their order."""
    frame = spark.range(0, ROWS, 1, 2).selectExpr("'hot' AS page")

    def count(table):
        return pa.table({"rows": [table.num_rows]})

    def largest(grouped):
        by_task = grouped.map_arrow(count, "rows long").groupBy(F.spark_partition_id()).sum("rows")
        return max(row[1] for row in by_task.collect())

    assert largest(sy.group_by(frame, "page", workers=4)) <= 1.02 * ROWS / 4
    with pytest.warns(UserWarning, match="name columns that differ with salt="):
        assert largest(sy.group_by(frame.repartition(2), "page", workers=4)) == ROWS


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda f: sy.group_by(f, "nope", workers=2), "there is no column 'nope'"),
        pytest.param(
            lambda f: sy.group_by(f.selectExpr("page COLLATE UTF8_LCASE AS p"), "p", workers=2),
            "whose equal values may have different hashes",
            marks=pytest.mark.needs_spark("4.0", reason="collations"),
        ),
        (
            lambda f: sy.group_by(f.selectExpr("map(1, 2) AS m"), "m", workers=2),
            "which Spark cannot hash",
        ),
        (lambda f: sy.group_by(f, "page", workers=2, weight="page"), "must hold numbers"),
        (
            lambda f: sy.group_by(f, "page", workers=2, routing=sy.Planner(2).plan, weight="id"),
            "a RoutingPlan does not use weight; pass one of them",
        ),
        (
            lambda f: sy.group_by(f.withColumn("__steelyard_bin", F.lit(1)), "page", workers=2),
            "column names that begin with __steelyard_ are reserved",
        ),
        (
            lambda f: sy.group_by(f, "page", workers=4, tasks_per_worker=2, capacities=[1, 2]),
            "each of 4 bins",
        ),
        (lambda f: sy.group_by(f, workers=2), "key needs at least one column"),
        (lambda f: sy.group_by(f, "page", workers=0), "workers must be a whole number"),
        (lambda f: sy.group_by(f, "page", workers=2, tasks_per_worker=0), "tasks_per_worker must"),
        (
            lambda f: sy.group_by(f, "page", workers=2, routing=sy.Balance(epsilon=0)),
            "epsilon must be",
        ),
        (lambda f: sy.group_by(f, "page", workers=2, weight="w"), "there is no column 'w'"),
        (lambda f: sy.group_by(f, "page", workers=2, capacities=[1]), "capacities must have"),
        (
            lambda f: sy.group_by(f.select("*", "id"), "page", workers=2),
            "rename all but one of 'id'",
        ),
        (
            lambda f: sy.group_by(
                f, "page", workers=2, whole_light_keys=True, routing=sy.schemes.named("porc")
            ),
            "a Scheme does not use whole_light_keys; pass one of them",
        ),
        (
            lambda f: sy.group_by(
                f.repartition(2), "page", workers=2, routing=sy.schemes.named("porc")
            ),
            "may have another order when Spark retries a task; pass sy.Balance",
        ),
        (
            lambda f: sy.group_by(f, "page", workers=2, routing=sy.Planner(3).plan),
            "the plan is for 3 workers, not for 2",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(skewed, make, sentence):
    """The error comes before any job starts."""
    before = jobs(skewed)
    with pytest.raises(ValueError, match=sentence):
        make(skewed)
    assert before == jobs(skewed)


@pytest.mark.parametrize(
    ("aggregators", "sentence"),
    [
        ([], "at least one aggregator"),
        ([sy.Sum("page")], "needs a column of"),
        ([sy.Count(), sy.Count()], "would be called 'count'; give an aggregator another name with"),
        ([sy.Count().alias("n"), sy.Max("page").alias("N")], "would be called 'n'"),
        ([sy.Count().alias("Page")], "would be called 'Page'"),
        ([sy.Count().alias("__steelyard_n")], "begin with __steelyard_ are reserved"),
    ],
)
def test_bad_aggregators_get_one_sentence(skewed, aggregators, sentence):
    """The error comes before a row is read."""
    with pytest.raises(ValueError, match=sentence):
        sy.group_by(skewed, "page", workers=2).aggregate(*aggregators)


def test_the_table_of_hot_keys_names_them_as_reports_do(skewed):
    """A program gets the keys."""
    routing = sy.Balance(report_keys="hidden")
    found = sy.group_by(skewed, "page", workers=4, routing=routing).hot_keys
    assert "(hidden)" in repr(found)
    assert found == sy.group_by(skewed, "page", workers=4).hot_keys


def test_names_of_results_follow_the_case_rule_of_spark(spark, skewed):
    """Names in another case are other names if Spark distinguishes them."""
    both = [sy.Count().alias("n"), sy.Max("page").alias("N")]
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert sy.group_by(skewed, "page", workers=2).aggregate(*both).columns == ["page", "n", "N"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_result_may_not_have_the_name_of_a_key_expression(skewed):
    """The key is an expression, whose alias names its column."""
    grouped = sy.group_by(skewed, F.lower("page").alias("count"), workers=2)
    with pytest.raises(ValueError, match="would be called 'count'"):
        grouped.aggregate(sy.Count())


def jobs(frame):
    """Return the jobs that have run so far; an empty list on Spark Connect."""
    if not hasattr(frame, "_jdf"):  # Spark Connect does not list jobs
        return []
    return frame.sparkSession.sparkContext.statusTracker().getJobIdsForGroup(None)


def test_the_list_of_jobs_grows_with_a_job(skewed):
    """This shows that `test_bad_arguments_get_one_sentence` can fail."""
    before = jobs(skewed)
    skewed.count()
    assert not hasattr(skewed, "_jdf") or before != jobs(skewed)


def test_invalid_functions_and_aggregators_are_refused(skewed):
    """Wrong arguments and wrong results of a function are refused; small types are cast."""
    grouped = sy.group_by(skewed, "page", workers=2)
    with pytest.raises(TypeError, match="function must be callable"):
        grouped.map_arrow("count", "n long")
    with pytest.raises(TypeError, match="aggregate takes aggregators"):
        grouped.aggregate("count")
    with pytest.raises(Exception, match="must return a pyarrow Table or RecordBatch, got int"):
        grouped.map_arrow(lambda _: 1, "n long").collect()
    with pytest.raises(Exception, match="names the columns m, but the function returned n"):
        grouped.map_arrow(lambda _: pa.table({"n": [1]}), "m long").collect()
    small = grouped.map_arrow(lambda _: pa.table({"b": [1], "a": ["x"]}), "a string, b tinyint")
    assert {("x", 1)} == {tuple(row) for row in small.collect()}


def test_times_have_the_time_zone_of_the_session(spark):
    """Keys and values may be timestamps in a session whose time zone is not UTC."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.range(0, 60, 1, 2).selectExpr("timestamp_seconds(id % 3 * 86400) AS t", "id")
        ours = sy.group_by(frame, "t", workers=2).aggregate(sy.Max("t"), sy.Sum("id"))
        sparks = frame.groupBy("t").agg(F.max("t"), F.sum("id"))
        assert ours.schema.simpleString() == sparks.schema.simpleString()
        assert sorted(ours.collect()) == sorted(sparks.collect())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_columns_may_have_any_name(spark):
    """Names may have dots and backticks, and may be those of the columns of a block."""
    frame = spark.range(0, 100, 1, 2).toDF("a.b`c").withColumn("bin", F.lit("x"))
    frame = frame.withColumn("block", F.lit(b"y")).withColumn("s.t", F.struct(F.lit(1).alias("u")))
    same = sy.group_by(frame, "a.b`c", workers=2).map_arrow(lambda t: t, frame.schema)
    assert sorted(same.collect()) == sorted(frame.collect())
    counts = sy.group_by(frame, "a.b`c", "bin", workers=2).aggregate(sy.Count())
    assert 100 == counts.count()
