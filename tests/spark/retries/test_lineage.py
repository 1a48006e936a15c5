"""The columns of many plans that are deterministic across task retries."""

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeated
from steelyard.spark.retries.rows import Kind
from steelyard.spark.versions.partitions import to_partitions

ALL = {"id", "page", "small", "part", "price", "parts", "at"}


@pytest.fixture(scope="module")
def files(spark, tmp_path_factory):
    """Rows in Parquet files."""
    path = str(tmp_path_factory.mktemp("lineage") / "rows")
    spark.range(0, 20, 1, 2).selectExpr(
        "id",
        "id % 7 AS page",
        "cast(id % 3 AS int) AS small",
        "id * 0.5D AS part",
        "cast(id AS decimal(10, 2)) AS price",
        "array(id, id + 1) AS parts",
        "timestamp_seconds(id) AS at",
    ).write.parquet(path)
    return spark.read.parquet(path)


def over(*order):
    """A window for each page, in some order."""
    return Window.partitionBy("page").orderBy(*order)


def by_page(f, *results):
    """Aggregates of each page."""
    return f.groupBy("page").agg(*results)


def python(f):
    """A column that a Python function computes, and one from the files."""
    return f.select("id", F.udf(lambda n: n, "long")("id").alias("made"))


def sql(f, query):
    """A query on the rows."""
    return f.sparkSession.sql(query, rows=f)


CASES = {
    "files": (ALL, lambda f: f),
    "computed": (
        {"a", "b", "c"},
        lambda f: f.selectExpr(
            "upper(string(id)) AS a",
            "CASE WHEN id > 3 AND part BETWEEN 1 AND 2 THEN id ELSE -1 END AS b",
            "transform(parts, x -> x + 1)[0] AS c",
        ),
    ),
    "shuffled": (ALL, lambda f: f.repartition(3).repartition(2, "page").coalesce(1)),
    "sorted": (ALL, lambda f: f.orderBy("part")),
    "by id": (ALL, lambda f: to_partitions(f, 3, F.col("small"))),
    "cached": (ALL, lambda f: f.repartition(2).cache()),
    "filtered": (ALL, lambda f: f.where("id > 3 AND page IN (1, 2)").dropna()),
    "exploded": ({*ALL, "one"}, lambda f: f.withColumn("one", F.explode("parts"))),
    "joined": (
        {*ALL, "n"},
        lambda f: f.join(f.groupBy("page").agg(F.count("*").alias("n")), "page", "left"),
    ),
    "semi": (ALL, lambda f: f.join(f.where("id > 3"), "page", "left_semi")),
    "broadcast": (
        {*ALL, "n"},
        lambda f: f.join(F.broadcast(f.selectExpr("id", "page AS n")), "id"),
    ),
    "union": (ALL, lambda f: f.union(f.repartition(2))),
    "distinct": ({"id", "page"}, lambda f: f.select("id", "page").distinct()),
    "all columns": ({"id", "page"}, lambda f: f.select("id", "page").dropDuplicates()),
    "sets": (
        {"id"},
        lambda f: f.select("id").intersect(f.select("page")).exceptAll(f.select("id")),
    ),
    "exact aggregates": (
        {"page", "n", "sum", "small", "price", "max", "any", "ids"},
        lambda f: by_page(
            f,
            F.count("*").alias("n"),
            F.sum("id").alias("sum"),
            F.sum("small").alias("small"),
            F.sum("price").alias("price"),
            F.max(F.struct("price", "id")).alias("max"),
            F.bool_or(F.col("id") > 3).alias("any"),
            F.count_distinct("id").alias("ids"),
        ),
    ),
    "rollup": (
        {"page", "small", "n"},
        lambda f: f.rollup("page", "small").agg(F.count("*").alias("n")),
    ),
    "numbered on a scan": (
        {"id", "n", "r"},
        lambda f: f.select("id", F.monotonically_increasing_id().alias("n"), F.rand(1).alias("r")),
    ),
    "numbered, then shuffled": (
        {"page", "id", "n", "count"},
        lambda f: f.select("page", "id", F.monotonically_increasing_id().alias("n")).join(
            f.groupBy("page").count(), "page"
        ),
    ),
    "sample of a scan": (ALL, lambda f: f.sample(0.5, seed=1)),
    "ranked": (
        {*ALL, "rank", "total", "so far"},
        lambda f: (
            f.withColumn("rank", F.rank().over(over("part")))
            .withColumn("total", F.sum("id").over(Window.partitionBy("page")))
            .withColumn("so far", F.sum("id").over(over("part")))
        ),
    ),
    "with": (
        {"page", "n", "m"},
        lambda f: sql(
            f,
            "WITH a AS (SELECT page, count(*) AS n FROM {rows} GROUP BY page) "
            "SELECT a.page, a.n, b.n AS m FROM a JOIN a AS b ON a.page = b.page "
            "WHERE a.page IN (SELECT id FROM {rows}) AND EXISTS "
            "(SELECT 1 FROM {rows} AS r WHERE r.page = a.page) "
            "AND a.n < (SELECT max(id) FROM {rows})",
        ),
    ),
    "wide": (
        {f"c{i}" for i in range(40)} - {"c33"},
        lambda f: f.repartition(2).select(
            *((F.rand() if i == 33 else F.col("id") + i).alias(f"c{i}") for i in range(40))
        ),
    ),
    "strange names": (
        {"a, b", "sum(id)", "c AS d", "e "},
        lambda f: (
            f.groupBy("page")
            .agg(F.sum("id"), F.first("id").alias("first(id)"))
            .select(
                F.col("page").alias("a, b"),
                F.col("`sum(id)`"),
                F.col("page").alias("c AS d"),
                F.col("page").alias("e "),
                F.col("`first(id)`"),
                (F.col("`first(id)`") + 1).alias("more"),
            )
        ),
    ),
    # Steps that keep one row of several: the columns that decide are deterministic.
    "duplicates": ({"page"}, lambda f: f.dropDuplicates(["page"])),
    "duplicates, then more": (
        {"page", "twice", "at"},
        lambda f: (
            f.select("page", "id")
            .dropDuplicates(["page"])
            .withColumn("twice", F.col("page") * 2)
            .join(f.select("page", "at"), "page")
        ),
    ),
    "row_number": (
        {"page", "at"},
        lambda f: (
            f.withColumn("n", F.row_number().over(over(F.desc("at")))).where("n = 1").drop("n")
        ),
    ),
    "row_number renamed": (
        {"p", "a"},
        lambda f: (
            f.select("*", F.row_number().over(over("at")).alias("n"))
            .selectExpr("page AS p", "at AS a", "n AS rank", "id")
            .where("rank <= 2")
            .drop("rank")
        ),
    ),
    "row_number and more": (
        set(),
        lambda f: f.withColumn("n", F.row_number().over(over("at"))).where("n = 1 AND id > 3"),
    ),
    "first of a sorted frame": ({"price", "id"}, lambda f: f.orderBy("price", "id").limit(3)),
    "first by a double": ({"id"}, lambda f: f.orderBy("part", "id").limit(3)),
    "limit": (set(), lambda f: f.limit(3)),
    "limit, then shuffled": (set(), lambda f: f.limit(3).repartition(2).select("id", "page")),
    "offset": (set(), lambda f: f.offset(3)),
    "joined with a limit": (set(), lambda f: f.join(f.select("page").limit(3), "page")),
    # Values that depend on the order of rows.
    "inexact aggregates": (
        {"page"},
        lambda f: by_page(
            f,
            F.sum("part"),
            F.avg("id"),
            F.first("id"),
            F.last("id"),
            F.any_value("id"),
            F.collect_list("id"),
            F.collect_set("id"),
            F.mode("id"),
            F.max_by("id", "small"),
            F.stddev("part"),
            F.approx_percentile("id", 0.5),
        ),
    ),
    "joined texts": (
        {"page"},
        lambda f: by_page(f, F.listagg(F.col("id").cast("string"))),
    ),
    "computed from a sum": (
        {"page", "n"},
        lambda f: by_page(f, F.sum("part").alias("s"), F.count("*").alias("n")).selectExpr(
            "page", "n", "round(s, 1) AS rounded", "s > 3 AS large"
        ),
    ),
    "aggregates of a sum": (
        {"page"},
        lambda f: by_page(f, F.sum("part").alias("s")).groupBy("page").agg(F.max("s"), F.sum("s")),
    ),
    "grouped by a sum": (
        {"page"},
        lambda f: by_page(f, F.sum("part").alias("s")).groupBy("page", "s").count(),
    ),
    "joined by a sum": (
        set(),
        lambda f: by_page(f, F.sum("part").alias("s")).join(f.selectExpr("part AS s", "id"), "s"),
    ),
    "windows": (
        ALL,
        lambda f: (
            f.withColumn("lag", F.lag("id").over(over("part")))
            .withColumn("first", F.first("id").over(over("part")))
            .withColumn("rows", F.sum("id").over(over("part").rowsBetween(-1, 0)))
            .withColumn("doubles", F.sum("part").over(Window.partitionBy("page")))
            .withColumn("fourth", F.ntile(4).over(over("part")))
        ),
    ),
    "numbered after a shuffle": (
        {"id"},
        lambda f: f.repartition(2).select(
            "id",
            F.monotonically_increasing_id(),
            F.rand(1),
            F.expr("uuid()"),
            F.spark_partition_id(),
            F.shuffle("parts"),
            (F.rand(2) * 3).cast("int"),
        ),
    ),
    # Rows that may be missing independently: their values are deterministic, sums are not.
    "sample after a shuffle": (ALL, lambda f: f.repartition(2).sample(0.5, seed=1)),
    "filtered at random": (
        {"page"},
        lambda f: f.repartition(2).where(F.rand(1) < 0.5).groupBy("page").count(),
    ),
    "outer join with rows that may be missing": (
        {"id", "page"},
        lambda f: f.select("id", "page").join(
            f.repartition(2).where(F.rand(1) < 0.5).selectExpr("page", "at"), "page", "left"
        ),
    ),
    # Unknown steps and functions.
    "python": ({"id"}, python),
    "filtered by python": ({"id"}, lambda f: python(f).where("made > 3")),
    "grouped by python": (set(), lambda f: python(f).groupBy("made").count()),
    "reflection": (
        {"id"},
        lambda f: f.selectExpr("id", "java_method('java.lang.System', 'nanoTime') AS now"),
    ),
    "encrypted": (
        {"id"},
        lambda f: f.selectExpr("id", "aes_encrypt(string(id), '0123456789abcdef') AS secret"),
    ),
    "mapInArrow": (set(), lambda f: f.mapInArrow(lambda batches: batches, f.schema)),
    "mapInPandas": (set(), lambda f: f.mapInPandas(lambda frames: frames, f.schema)),
    "applyInArrow": (
        set(),
        lambda f: f.groupBy("page").applyInArrow(lambda table: table, f.schema),
    ),
    "union with unknown rows": (
        set(),
        lambda f: f.union(f.mapInArrow(lambda batches: batches, f.schema)),
    ),
}

NEEDS = {"by id": "4.1", "joined texts": "4.0", "applyInArrow": "4.0"}


def _case(name):
    """Return a case that is skipped on versions of Spark that lack its step."""
    needed = pytest.mark.needs_spark(NEEDS.get(name, "3.5"), reason="the step of the case")
    return pytest.param(name, marks=needed)


@pytest.mark.parametrize("case", [_case(name) for name in CASES])
def test_deterministic_columns(files, case):
    """The analysis finds the deterministic columns of a plan, and no others."""
    deterministic, make = CASES[case]
    frame = make(files)
    doubts = repeated(frame).doubts
    assert deterministic == {name for name in frame.columns if name not in doubts}


def test_a_doubt_has_a_reason(files):
    """The reason is randomness, the order of rows or an unknown origin."""
    shuffled = files.repartition(2).select(F.monotonically_increasing_id().alias("n"))
    assert repeated(shuffled).doubts["n"].kind is Kind.RANDOM
    assert repeated(python(files)).doubts["made"].kind is Kind.UNKNOWN
    sums = repeated(by_page(files, F.sum("part").alias("s"), F.first("id").alias("f"))).doubts
    assert ("sum() of floating-point numbers", Kind.ORDER) == (sums["s"].why, sums["s"].kind)
    assert ("first()", Kind.ORDER) == (sums["f"].why, sums["f"].kind)


@pytest.mark.parametrize(
    ("deterministic", "make"),
    [
        (ALL, lambda s: s),
        (ALL, lambda s: s.repartition(2)),
        ({"id"}, lambda s: s.dropDuplicates(["id"])),
        ({"id", "at"}, lambda s: s.withWatermark("at", "1 day").dropDuplicates(["id", "at"])),
        (
            {"id"},
            lambda s: s.withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["id"]),
        ),
        (set(), lambda s: s.dropDuplicates(["id"]).withWatermark("at", "1 day")),
        ({"id", "price"}, lambda s: s.dropDuplicates(["id", "part", "price"])),
        ({"id"}, lambda s: s.select("id", "part").distinct()),
        (
            {"id"},
            lambda s: s.withWatermark("at", "1 day").dropDuplicatesWithinWatermark(["id", "part"]),
        ),
        (
            {"page", "n"},
            lambda s: by_page(s, F.count("*").alias("n"), F.sum("part"), F.first("id")),
        ),
        (
            {"window", "n"},
            lambda s: s.withWatermark("at", "1 day")
            .groupBy(F.window("at", "1 hour"))
            .agg(F.count("*").alias("n")),
        ),
        (
            {"at", "id", "n"},
            lambda s: s.select("at", "id")
            .withWatermark("at", "1 day")
            .join(s.selectExpr("at AS then", "id AS n").withWatermark("then", "1 day"),
                  F.expr("id = n AND at >= then - interval 1 hour")),
        ),
    ],
)  # fmt: skip
def test_deterministic_columns_of_streams(spark, files, tmp_path, deterministic, make):
    """Steps that keep state are analyzed as well."""
    frame = make(spark.readStream.schema(files.schema).parquet(str(tmp_path)))
    doubts = repeated(frame).doubts
    found = {name for name in frame.columns if name not in doubts}
    assert deterministic == found - {"then"}
