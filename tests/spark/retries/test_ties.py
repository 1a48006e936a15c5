"""Values that are equal in Spark's comparison and differ in bytes, such as 0.0 and -0.0."""

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeated

WITH_TIES = ["part", "float", "struct", "array", "nested"]
WITHOUT_TIES = ["id", "page", "small", "price", "at", "ids"]


@pytest.fixture(scope="module")
def zeros(spark, tmp_path_factory):
    """Rows whose floating-point numbers are all equal: 0.0 or -0.0."""
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


def deterministic(frame):
    """The columns whose values are the same after a task retry."""
    doubts = repeated(frame).doubts
    return {name for name in frame.columns if name not in doubts}


def all_rows_by(name):
    """A window of all rows; Spark Connect warns of a window without partitions."""
    return Window.partitionBy(F.lit(1)).orderBy(name)


def first_by_number(frame, window):
    """The first row of each window."""
    return frame.withColumn("n", F.row_number().over(window)).where("n = 1").drop("n")


@pytest.mark.parametrize("name", WITH_TIES)
def test_a_sort_key_with_ties_is_doubtful_after_a_limit(zeros, name):
    """The other sort keys stay deterministic."""
    assert deterministic(zeros.orderBy(name).limit(3)) == set()
    assert deterministic(zeros.orderBy(F.desc(name), "page").limit(3)) == {"page"}
    assert deterministic(zeros.orderBy("page", "id", name).offset(3)) == {"page", "id"}


@pytest.mark.parametrize("name", WITH_TIES)
def test_a_key_with_ties_is_doubtful_after_a_filter_by_row_number(zeros, name):
    """The key may sort or partition the window."""
    sorted_by_name = Window.partitionBy("page").orderBy(name)
    assert deterministic(first_by_number(zeros, sorted_by_name)) == {"page"}
    partitioned_by_name = Window.partitionBy(name).orderBy("at", "id")
    assert deterministic(first_by_number(zeros, partitioned_by_name)) == {"at", "id"}
    assert deterministic(first_by_number(zeros, all_rows_by(name))) == set()


@pytest.mark.parametrize("name", WITHOUT_TIES)
def test_a_key_without_ties_stays_deterministic(zeros, name):
    """Rows that are equal in such a key have the same bytes in it."""
    assert deterministic(zeros.orderBy(name).limit(3)) == {name}
    assert deterministic(first_by_number(zeros, all_rows_by(name))) == {name}


@pytest.mark.classic_only(reason="Spark Connect shows only the types of the result")
def test_a_value_computed_from_a_key_without_ties_is_deterministic(zeros):
    """The type of the key is known although the key is not in the result."""
    for frame in (zeros.orderBy("at").limit(3), first_by_number(zeros, all_rows_by("at"))):
        computed = frame.select(F.hash("at").alias("by time"), F.hash("id").alias("by id"))
        assert deterministic(computed) == {"by time"}
    inverse = zeros.orderBy("part").limit(3).select((1 / F.col("part")).alias("inverse"))
    assert deterministic(inverse) == set()


@pytest.mark.parametrize("name", WITH_TIES)
def test_spark_normalizes_the_keys_of_groups(zeros, name):
    """Spark shows -0.0 as 0.0 in a key, so keys do not depend on the order of rows."""
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
    assert all(name in deterministic(frame) for frame in frames)


@pytest.mark.parametrize("name", WITH_TIES)
def test_spark_gives_equal_values_the_same_rank(zeros, name):
    """Neither ranks nor a second sort key depend on the order in which equal values arrive."""
    window = all_rows_by(name)
    ranks = [F.rank(), F.dense_rank(), F.percent_rank(), F.cume_dist(), F.sum("id")]
    ranked = zeros.select(*(rank.over(window).alias(f"r{i}") for i, rank in enumerate(ranks)))
    assert ranked.distinct().count() == 1
    assert deterministic(ranked) == set(ranked.columns)
    ids = [row["id"] for row in zeros.orderBy(name, "id").select("id").collect()]
    assert ids == sorted(ids)
