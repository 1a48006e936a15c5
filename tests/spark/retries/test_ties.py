"""Values that Spark's comparison calls equal, and that differ: 0.0 and -0.0, for example."""

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeated

FRACTIONS = ["part", "float", "struct", "array", "nested"]
EXACT = ["id", "page", "small", "price", "at", "ids"]


@pytest.fixture(scope="module")
def zeros(spark, tmp_path_factory):
    """Rows whose fractions are all equal: 0.0 or -0.0."""
    path = str(tmp_path_factory.mktemp("ties") / "rows")
    zero = "double(if(id % 2 = 0, '0.0', '-0.0'))"
    spark.range(0, 20, 1, 4).selectExpr(
        "id",
        "string(id % 2) AS page",
        "int(id) AS small",
        "cast(id AS decimal(10, 2)) AS price",
        "timestamp_seconds(id) AS at",
        "array(id) AS ids",
        f"{zero} AS part",
        f"float({zero}) AS float",
        f"struct({zero} AS a) AS struct",
        f"array({zero}) AS array",
        f"array(struct({zero} AS a)) AS nested",
    ).write.parquet(path)
    return spark.read.parquet(path)


def sure(frame):
    """The columns whose values are the same when a task is retried."""
    doubts = repeated(frame).doubts
    return {name for name in frame.columns if name not in doubts}


def all_rows_by(name):
    """A window of all rows; Spark Connect warns of a window without partitions."""
    return Window.partitionBy(F.lit(1)).orderBy(name)


def first_by_number(frame, window):
    """The first row of each window."""
    return frame.withColumn("n", F.row_number().over(window)).where("n = 1").drop("n")


@pytest.mark.parametrize("name", FRACTIONS)
def test_a_limit_does_not_decide_between_equal_fractions(zeros, name):
    """The other columns that the rows are sorted by stay sure."""
    assert sure(zeros.orderBy(name).limit(3)) == set()
    assert sure(zeros.orderBy(F.desc(name), "page").limit(3)) == {"page"}
    assert sure(zeros.orderBy("page", "id", name).offset(3)) == {"page", "id"}


@pytest.mark.parametrize("name", FRACTIONS)
def test_a_row_number_does_not_decide_between_equal_fractions(zeros, name):
    """The window may be sorted or partitioned by them."""
    by_fraction = Window.partitionBy("page").orderBy(name)
    assert sure(first_by_number(zeros, by_fraction)) == {"page"}
    of_fraction = Window.partitionBy(name).orderBy("at", "id")
    assert sure(first_by_number(zeros, of_fraction)) == {"at", "id"}
    assert sure(first_by_number(zeros, all_rows_by(name))) == set()


@pytest.mark.parametrize("name", EXACT)
def test_types_without_ties_stay_sure(zeros, name):
    """Rows that are equal in such a column have the same value."""
    assert sure(zeros.orderBy(name).limit(3)) == {name}
    assert sure(first_by_number(zeros, all_rows_by(name))) == {name}


@pytest.mark.classic_only(reason="only the types of the result are known")
def test_types_are_known_within_a_plan(zeros):
    """A value that is computed from a sort key is sure if the type of the key has no ties."""
    for frame in (zeros.orderBy("at").limit(3), first_by_number(zeros, all_rows_by("at"))):
        computed = frame.select(F.hash("at").alias("by time"), F.hash("id").alias("by id"))
        assert sure(computed) == {"by time"}
    fractions = zeros.orderBy("part").limit(3).select((1 / F.col("part")).alias("inverse"))
    assert sure(fractions) == set()


@pytest.mark.parametrize("name", FRACTIONS)
def test_spark_makes_zeros_of_groups_equal(zeros, name):
    """Spark normalizes keys of groups, so that they do not depend on the order of rows."""
    key = F.col(name).cast("string").alias("key")
    frames = [
        zeros.groupBy(name).agg(F.count("*")),
        zeros.groupBy(name).agg(F.count_distinct("id"), F.count_distinct("page")),
        zeros.groupBy(name).agg(F.collect_list("id")),
        zeros.rollup(name).agg(F.max("page")).where(F.col(name).isNotNull()),
        zeros.select(name).distinct(),
        zeros.dropDuplicates([name]),
        zeros.select(name).intersect(zeros.select(name)),
    ]
    shown = {row["key"] for frame in frames for row in frame.select(key).collect()}
    assert len(shown) == 1
    assert "-" not in shown.pop()
    assert all(name in sure(frame) for frame in frames)


@pytest.mark.parametrize("name", FRACTIONS)
def test_spark_gives_equal_fractions_the_same_rank(zeros, name):
    """Ranks do not depend on the order of rows; neither do rows that are sorted by more."""
    window = all_rows_by(name)
    ranks = [F.rank(), F.dense_rank(), F.percent_rank(), F.cume_dist(), F.sum("id")]
    ranked = zeros.select(*(rank.over(window).alias(f"r{i}") for i, rank in enumerate(ranks)))
    assert ranked.distinct().count() == 1
    assert sure(ranked) == set(ranked.columns)
    ids = [row["id"] for row in zeros.orderBy(name, "id").select("id").collect()]
    assert ids == sorted(ids)
