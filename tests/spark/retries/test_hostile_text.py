"""EXPLAIN quotes neither literals nor names: whatever they look like, they hide no doubt."""

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
    """Rows behind a shuffle, with text and fractions."""
    path = str(tmp_path_factory.mktemp("hostile") / "rows")
    spark.range(0, 20, 1, 2).selectExpr(
        "id", "id % 7 AS page", "id % 2 AS copy", "string(id) AS txt", "id * 0.5D AS part"
    ).write.parquet(path)
    return spark.read.parquet(path).repartition(2)


def chosen(literal, other, condition=None):
    """Either the literal or another value, as EXPLAIN shows it without brackets."""
    condition = F.col("page") > 3 if condition is None else condition
    return F.when(condition, F.lit(literal)).otherwise(other)


def python(name="txt"):
    """A value made by Python."""
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
    "fractions": lambda: F.sum("part").cast("string"),
    "least": lambda: F.min("part").cast("string"),
}

SHAPES = {
    "behind": chosen,
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
    """The places of the columns that are not sure: names may be there twice."""
    doubts = repeated(frame).doubts
    return [name in doubts for name in frame.columns]


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_what_is_made_by_row(rows, literal):
    """Beside it in the same step, whatever it looks like."""
    values = cycle(BY_ROW.values())
    for _ in range(HOSTILE.index(literal) % len(BY_ROW)):
        next(values)  # another value with every literal, to save time
    for shape, value in zip(SHAPES.values(), values, strict=False):
        made = shape(literal, value()).alias("v")
        frame = rows.select("id", F.upper("txt").alias("up"), made)
        found = doubtful(frame)
        assert found[2], frame.explain(extended=True)
        later = frame.select("id", F.hash("v").alias("h"))
        assert doubtful(later)[1], later.explain(extended=True)
        assert literal not in HARMLESS or found[:2] == [False, False]


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_what_is_made_of_a_group(rows, literal):
    """In aggregates, too."""
    for shape in SHAPES.values():
        made = [shape(literal, value()).alias(name) for name, value in BY_GROUP.items()]
        frame = rows.groupBy("page").agg(F.count("*").alias("n"), *made)
        found = doubtful(frame)
        assert all(found[2:]), frame.explain(extended=True)
        assert literal not in HARMLESS or found[:2] == [False, False]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name], ids=repr)
def test_no_name_hides_a_doubt(rows, name):
    """Columns may have any name, and are followed by their numbers."""
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
    """Beside a subquery that is sure, a column keeps its doubt."""
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
def test_no_literal_hides_a_condition(rows, literal):
    """Rows that are kept or joined by chance are not counted alike."""
    made = rows.withColumn("r", F.expr("uuid()"))
    kept = made.where(chosen(literal, F.col("r")) > "3")
    other = made.selectExpr("page AS p", "r AS s")
    joined = rows.join(other, F.concat(F.lit(literal), "s") == F.col("txt"))
    for frame in (kept, joined):
        counted = frame.groupBy("page").agg(F.count("*").alias("n"))
        assert doubtful(counted)[1], counted.explain(extended=True)


@pytest.mark.parametrize("literal", HOSTILE, ids=repr)
def test_no_literal_hides_a_window(rows, literal):
    """What is made over a window keeps its doubt."""
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
def test_no_name_of_what_is_unknown_looks_like_an_expression(rows, name):
    """A column that Python made is unknown under any name, and so is one made of it."""
    renamed = rows.select("txt").mapInArrow(lambda batches: batches, "t string").toDF(name)
    assert doubtful(renamed) == [True]
    from_range = rows.sparkSession.range(9).select(python("id").alias(name), "id")
    assert doubtful(from_range)[0]
    schema = rows.select(F.col("txt").alias(name)).schema
    straight = rows.select("txt").mapInArrow(lambda batches: batches, schema)
    assert doubtful(straight.select("*")) == [True]


def test_literals_as_they_are_stay_sure(rows):
    """A literal beside sure columns makes nothing doubtful, even if it looks strange."""
    for literal in [*HARMLESS, "a AS b", "a, b", "(a, b)", "[x]", "{y}", "a`b", "it's"]:
        frame = rows.select("id", F.lit(literal).alias("v"), chosen(literal, F.col("txt")))
        assert doubtful(frame) == [False, False, False], literal


def test_min_and_max_of_fractions_depend_on_the_order(rows):
    """0.0 and -0.0 are equal: either may be the least. Other types have no such values."""
    made = {
        "part": True,
        "float(part)": True,
        "struct(id, part)": True,
        "array(part)": True,
        "txt COLLATE UTF8_LCASE": True,
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


def test_min_and_max_of_unknown_types_are_doubted(rows):
    """A type that EXPLAIN does not show is not guessed."""
    least = rows.groupBy("page").agg(F.min("part").alias("least"))
    assert doubtful(least.select("page", F.hash("least").alias("h"))) == [False, True]
    longs = rows.groupBy("page").agg(F.min("id").alias("least"))
    assert doubtful(longs.select("page", F.hash("least").alias("h"))) == [False, False]
    casts = rows.groupBy("page").agg(F.min(F.col("id").cast("int")).alias("least"))
    assert doubtful(casts.select("page", F.hash("least").alias("h"))) == [False, False]


def test_a_column_that_is_not_used_costs_nothing(rows):
    """What is made by chance and dropped leaves the columns beside it sure."""
    frame = rows.select("id", (F.col("id") + 1).alias("n"), F.rand(1).alias("r")).drop("r")
    assert doubtful(frame) == [False, False]


def test_only_a_column_is_in_common(rows):
    """What rows are sorted by is in common; what it is made of is not."""
    frame = rows.select("txt", "page").orderBy(F.expr("'abc' LIKE txt")).limit(3)
    assert all(doubtful(frame))
