"""EXPLAIN quotes neither literals nor names, so they may resemble any part of a plan.

No literal and no name may hide a doubt.
"""

from itertools import cycle

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeated

HARMLESS = ["known", "two words", "", "list", "mylist", "exists", "scalar-subquery", "lambda x"]

MISLEADING = [
    "a AS b",
    "known AS x#12",
    "x#12",
    "x#12, y",
    "x AS y#5, z",
    "x END AS y#5, CASE WHEN z",
    "id#0L, z",
    "uuid()",
    "f(x",
    "x)",
    "(a, b)",
    ") AS q(",
    "a], [b",
    "[x]",
    "{y}",
    "a, b",
    "a`b",
    'it\'s "quoted"',
    "one\ntwo",
    "one\n+- Project [id#0L]",
    "one\u2028two",
    "list#12 []",
    "scalar-subquery#12 []",
    "lambda x#12",
    "List(",
    " windowspecdefinition(",
    "leftHint=(strategy=broadcast)",
    "== Optimized Logical Plan ==",
    "... 3 more fields",
]

HOSTILE = HARMLESS + MISLEADING


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """Rows after a shuffle, with strings and doubles."""
    path = str(tmp_path_factory.mktemp("hostile") / "rows")
    spark.range(0, 20, 1, 2).selectExpr(
        "id", "id % 7 AS page", "id % 2 AS copy", "string(id) AS txt", "id * 0.5D AS part"
    ).write.parquet(path)
    return spark.read.parquet(path).repartition(2)


def chosen(literal, other, condition=None):
    """The literal or another value; EXPLAIN prints this expression without brackets."""
    condition = F.col("page") > 3 if condition is None else condition
    return F.when(condition, F.lit(literal)).otherwise(other)


def python(name="txt"):
    """A value that a Python function computes."""
    return F.udf(lambda text: text, "string")(name)


BY_ROW = {
    "uuid": lambda: F.expr("uuid()"),
    "rand": lambda: F.rand(1).cast("string"),
    "number": lambda: F.monotonically_increasing_id().cast("string"),
    "python": python,
}

BY_GROUP = {
    "first": lambda: F.first("txt"),
    "list": lambda: F.collect_list("txt")[0],
    "doubles": lambda: F.sum("part").cast("string"),
    "least": lambda: F.min("part").cast("string"),
}

SHAPES = {
    "after": chosen,
    "before": lambda literal, value: F.when(value > "3", F.lit(literal)).otherwise(F.lit("w")),
    "in a call": lambda literal, value: F.concat(F.lit(literal), value),
    "between": lambda literal, value: F.concat(value, F.lit(literal), F.lit("w")),
    "like": lambda literal, value: value.like(literal),
    "liked": lambda literal, value: F.like(F.lit(literal), value),
    "between two": lambda literal, value: (
        F.when(F.lit("p AS q") == "r", F.lit("p AS q"))
        .when(value > "3", F.lit(literal))
        .otherwise(F.lit("w"))
    ),
}


def doubtful(frame):
    """Whether each column is doubtful, by position: a name may occur twice."""
    doubts = repeated(frame).doubts
    return [name in doubts for name in frame.columns]


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_a_doubtful_value_of_a_row(rows, literal):
    """The literal and the doubtful value are in the same step."""
    values = cycle(BY_ROW.values())
    for _ in range(HOSTILE.index(literal) % len(BY_ROW)):
        next(values)  # each literal gets one of the values, to save time
    for shape, value in zip(SHAPES.values(), values, strict=False):
        made = shape(literal, value()).alias("v")
        frame = rows.select("id", F.upper("txt").alias("up"), made)
        found = doubtful(frame)
        assert found[2], frame.explain(extended=True)
        later = frame.select("id", F.hash("v").alias("h"))
        assert doubtful(later)[1], later.explain(extended=True)
        assert literal not in HARMLESS or found[:2] == [False, False]


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_a_doubtful_aggregate(rows, literal):
    """The literal and the aggregate are in the same step."""
    for shape in SHAPES.values():
        made = [shape(literal, value()).alias(name) for name, value in BY_GROUP.items()]
        frame = rows.groupBy("page").agg(F.count("*").alias("n"), *made)
        found = doubtful(frame)
        assert all(found[2:]), frame.explain(extended=True)
        assert literal not in HARMLESS or found[:2] == [False, False]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name], ids=repr)
def test_no_name_hides_a_doubt(rows, name):
    """A column keeps its doubt under any name."""
    quoted = F.col("`" + name.replace("`", "``") + "`")
    made = [rows.select("id", value().alias(name)) for value in BY_ROW.values()]
    made += [rows.groupBy("id").agg(value().alias(name)) for value in BY_GROUP.values()]
    for frame in made:
        later = frame.select("id", F.hash(quoted).alias("h"), quoted, quoted.alias("other"))
        found = doubtful(later)
        assert all(found[1:]), later.explain(extended=True)
        assert name not in HARMLESS or not found[0]
        counted = frame.where(F.hash(quoted) > 3).groupBy("id").agg(F.count("*").alias("n"))
        assert doubtful(counted)[1], counted.explain(extended=True)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name], ids=repr)
def test_no_name_is_taken_for_a_subquery(rows, name):
    """A column keeps its doubt next to a deterministic subquery."""
    lists = rows.groupBy("page", "id").agg(F.collect_list("copy").alias(name))
    quoted = "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"
    sql = rows.sparkSession.sql
    frame = sql(
        f"SELECT page, id, hash({quoted}) AS h, (SELECT max(id) FROM range(9)) AS m FROM {{g}}",  # noqa: S608
        g=lists,
    )
    found = doubtful(frame)
    assert found[2]
    assert name not in HARMLESS or found == [False, False, True, False]
    kept = sql(
        f"SELECT page, id FROM {{g}} WHERE {quoted}[0] > 3 AND page IN (SELECT id FROM range(9)) "  # noqa: S608
        "AND EXISTS (SELECT 1 FROM range(3) AS t WHERE t.id = page)",
        g=lists,
    )
    assert doubtful(kept.groupBy("page").agg(F.count("*").alias("n")))[1]


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_a_doubtful_condition(rows, literal):
    """The number of rows that a random condition keeps or joins is doubtful."""
    made = rows.withColumn("r", F.expr("uuid()"))
    kept = made.where(chosen(literal, F.col("r")) > "3")
    other = made.selectExpr("page AS p", "r AS s")
    joined = rows.join(other, F.concat(F.lit(literal), "s") == F.col("txt"))
    for frame in (kept, joined):
        counted = frame.groupBy("page").agg(F.count("*").alias("n"))
        assert doubtful(counted)[1], counted.explain(extended=True)


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_a_doubtful_window_function(rows, literal):
    """The literal is an argument of the window function."""
    window = Window.partitionBy("page").orderBy("part")
    for value in (
        F.lag("txt", 1, literal).over(window),
        F.first(chosen(literal, F.col("txt"))).over(window),
        F.max(chosen(literal, F.expr("uuid()"))).over(window),
    ):
        frame = rows.select("id", value.alias("v"))
        assert doubtful(frame)[1], frame.explain(extended=True)
        assert literal not in HARMLESS or not doubtful(frame)[0]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name], ids=repr)
def test_no_name_of_an_unknown_column_is_taken_for_an_expression(rows, name):
    """A column that Python computes is doubtful under any name."""
    renamed = rows.select("txt").mapInArrow(lambda batches: batches, "t string").toDF(name)
    assert doubtful(renamed) == [True]
    from_range = rows.sparkSession.range(9).select(python("id").alias(name), "id")
    assert doubtful(from_range)[0]
    schema = rows.select(F.col("txt").alias(name)).schema
    straight = rows.select("txt").mapInArrow(lambda batches: batches, schema)
    assert doubtful(straight.select("*")) == [True]


def test_common_literals_cause_no_doubt(rows):
    """Deterministic columns stay deterministic next to a literal with commas or brackets."""
    for literal in [*HARMLESS, "a AS b", "a, b", "(a, b)", "[x]", "{y}", "a`b", "it's"]:
        frame = rows.select("id", F.lit(literal).alias("v"), chosen(literal, F.col("txt")))
        assert doubtful(frame) == [False, False, False], literal


@pytest.mark.parametrize(
    "inexact",
    [
        "part",
        "float(part)",
        "struct(id, part)",
        "array(part)",
        pytest.param(
            "txt COLLATE UTF8_LCASE",
            marks=pytest.mark.needs_spark("4.0", reason="collations"),
        ),
    ],
)
def test_min_and_max_of_doubles_depend_on_the_order(rows, inexact):
    """0.0 and -0.0 are equal, so either may be the minimum; most types have no such values."""
    made = {
        inexact: True,
        "id": False,
        "txt": False,
        "int(id)": False,
        "date(timestamp_seconds(id))": False,
        "timestamp_seconds(id)": False,
        "cast(id AS decimal(10, 2))": False,
        "struct(id, txt)": False,
        "array(txt)": False,
        "id > 3": False,
    }
    for function in ("min", "max"):
        results = [F.expr(f"{function}({text})").alias(f"c{i}") for i, text in enumerate(made)]
        expected = list(made.values())
        frame = rows.groupBy("page").agg(*results)
        assert doubtful(frame) == [False, *expected]
        names = frame.columns[1:]
        assert doubtful(frame.select(*(F.col(n).alias(f"{n}_") for n in names))) == expected
        assert doubtful(frame.union(frame)) == [False, *expected]
        window = Window.partitionBy("page")
        over = [F.expr(f"{function}({text})").over(window) for text in made]
        assert doubtful(rows.select(*(c.alias(f"c{i}") for i, c in enumerate(over)))) == expected


def test_values_computed_from_min_and_max_keep_their_doubt(rows):
    """A minimum of doubles is doubtful; a minimum of integers is not."""
    least = rows.groupBy("page").agg(F.min("part").alias("least"))
    assert doubtful(least.select("page", F.hash("least").alias("h"))) == [False, True]
    longs = rows.groupBy("page").agg(F.min("id").alias("least"))
    assert doubtful(longs.select("page", F.hash("least").alias("h"))) == [False, False]
    casts = rows.groupBy("page").agg(F.min(F.col("id").cast("int")).alias("least"))
    assert doubtful(casts.select("page", F.hash("least").alias("h"))) == [False, False]


def test_a_dropped_column_causes_no_doubt(rows):
    """A random column that is dropped does not affect the other columns."""
    frame = rows.select("id", (F.col("id") + 1).alias("n"), F.rand(1).alias("r")).drop("r")
    assert doubtful(frame) == [False, False]


def test_a_column_within_a_sort_expression_is_doubtful_after_a_limit(rows):
    """Rows with the same value of the expression may differ in the column."""
    frame = rows.select("txt", "page").orderBy(F.expr("'abc' LIKE txt")).limit(3)
    assert all(doubtful(frame))
