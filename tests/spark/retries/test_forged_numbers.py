"""Literals and names that equal the text of a column in EXPLAIN, including its real number."""

import io
import re
from contextlib import redirect_stdout

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from steelyard.spark.retries.repeated import repeated


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """Rows after a shuffle, with strings and doubles."""
    path = str(tmp_path_factory.mktemp("forged") / "rows")
    spark.range(0, 20, 1, 2).selectExpr(
        "id", "id % 7 AS page", "string(id) AS txt", "id * 0.5D AS part"
    ).write.parquet(path)
    return spark.read.parquet(path).repartition(2)


def shown(frame, name):
    """The text of a column in EXPLAIN: its name and its number."""
    with redirect_stdout(io.StringIO()) as printed:
        frame.select(name).explain(extended=True)
    return re.search(rf"\b{name}#\d+L?", printed.getvalue())[0]


def deterministic(frame):
    """The columns whose values are the same after a task retry."""
    doubts = repeated(frame).doubts
    return {name for name in frame.columns if name not in doubts}


def test_a_literal_is_not_taken_for_a_sort_key(rows):
    """A limit keeps arbitrary rows if the only sort key is a literal."""
    assert deterministic(rows.orderBy(F.lit(shown(rows, "txt"))).limit(3)) == set()
    assert deterministic(rows.orderBy(F.lit(shown(rows, "id"))).limit(3)) == set()


def test_a_literal_is_not_taken_for_a_key_of_a_window(rows):
    """A literal neither partitions nor sorts the rows of a window."""
    for window in (
        Window.partitionBy(F.lit(shown(rows, "txt"))).orderBy("page"),
        Window.partitionBy("page").orderBy(F.lit(shown(rows, "txt"))),
    ):
        numbered = rows.withColumn("n", F.row_number().over(window)).where("n = 1")
        assert "txt" not in deterministic(numbered.drop("n"))


def test_a_literal_does_not_divide_an_expression(rows):
    """A part of an expression is not taken for a column that a later step uses."""
    literal = "x END AS y#987654, CASE WHEN z"
    value = F.when(F.expr("uuid()") > "3", F.lit(literal)).otherwise(F.lit("w"))
    frame = rows.select("id", value.alias("v")).where(F.col("v") != literal)
    assert "v" not in deterministic(frame)


def test_a_literal_does_not_forge_the_type_of_a_column(rows):
    """A minimum of doubles is not taken for a minimum of strings."""
    least = rows.groupBy("page").agg(F.min("part").alias("least"))
    literal = F.lit(shown(least, "least")).alias("text")
    assert "hash" not in deterministic(least.select("page", F.hash("least").alias("hash"), literal))


def test_a_name_is_not_taken_for_a_sort_key(rows):
    """The name of one column may contain the name and the number of another column."""
    name = shown(rows, "txt")
    named = rows.select("txt", F.upper("txt").alias("up"), F.lit(1).alias(f"{name} ASC"))
    assert "txt" not in deterministic(named.orderBy(named[f"`{name} ASC`"]).limit(3))


def test_a_literal_that_resembles_steps_makes_a_plan_doubtful(rows):
    """A literal of several lines may add lines to the text of the plan."""
    literal = f"x)\n   +- Relation [{shown(rows, 'id')}] parquet\n+- Filter ("
    assert deterministic(rows.where(F.col("txt") != literal)) == set()


@pytest.mark.classic_only(reason="Spark Connect does not show which numbers are real")
@pytest.mark.parametrize("literal", ["#987654", "#00ff00", "#0", "a #987654 b", "x#987654, y"])
def test_a_number_that_no_column_has_is_harmless(rows, literal):
    """A literal such as a color neither causes nor hides a doubt."""
    frame = rows.where(F.col("txt") != literal).select(
        "id", F.concat("txt", F.lit(literal)).alias("longer"), F.expr("uuid()").alias("made")
    )
    assert deterministic(frame) == {"id", "longer"}
    counted = rows.where(F.col("txt") != literal).groupBy("page").agg(F.count("*").alias("n"))
    assert deterministic(counted) == {"page", "n"}
    named = rows.select(F.col("id").alias(literal), F.rand(1).alias("made"))
    assert deterministic(named) == {literal}
