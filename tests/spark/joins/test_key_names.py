"""Keys may have different names in both frames, and the result has the columns of Spark's join."""

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.joins.frames import assert_as_spark


@pytest.fixture(scope="module")
def people(spark):
    """Return people and their managers; one manages most of them."""
    manager = F.when(F.col("id") % 4 > 0, 3).when(F.col("id") > 30, F.col("id") - 20)
    return spark.range(0, 40, 1, 2).select("id", manager.cast("long").alias("manager"))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_a_dictionary_keeps_the_columns_of_both_frames(spark, people, how):
    """A frame may join itself, although both sides have both names."""
    other = people.select("id", "manager")
    condition = F.col("a.manager") == F.col("b.id")
    ours = sy.join(people, people, {"manager": "id"}, how, workers=3)
    sparks = people.alias("a").join(other.alias("b"), condition, how)
    assert sparks.columns == ours.columns
    assert sorted(map(repr, sparks.collect())) == sorted(map(repr, ours.collect()))


def test_a_dictionary_may_have_several_columns_of_different_types(spark, people):
    """The columns keep their types, and can be selected through their frames."""
    big = people.selectExpr("int(manager) AS boss", "id % 2 AS odd", "id AS n")
    small = people.selectExpr("id AS number", "int(id % 2) AS odd", "string(id) AS label")
    condition = (big["boss"] == small["number"]) & (big["odd"] == small["odd"])
    joined = assert_as_spark(big, small, {"boss": "number", "odd": "odd"}, condition=condition)
    parts = joined.select(big["odd"], small["odd"], small["label"])
    assert parts.columns == ["odd", "odd", "label"]
    assert parts.count() == joined.count()


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_names_may_differ_in_case(spark, people, how):
    """The result has the name that Spark gives it."""
    big = people.selectExpr("id AS n", "manager AS User", "id % 3 AS Part")
    small = people.selectExpr("id % 3 AS PART", "id AS USER", "id AS m")
    assert_as_spark(big, small, ["user", "pArt"], how)


def test_names_in_another_case_are_refused_if_case_matters(spark, people):
    """Spark would not find them either."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ValueError, match=r"on \(big\): there is no column 'ID'; the columns"):
            sy.join(people, people, "ID", workers=2)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_field_of_a_struct_may_be_a_key(spark, people):
    """It is named with a dot, in a dictionary."""
    big = people.select("id", F.struct("manager", "id").alias("data"))
    small = people.selectExpr("id AS number", "id % 5 AS rest")
    condition = big["data.manager"] == small["number"]
    assert_as_spark(big, small, {"data.manager": "number"}, "left", condition=condition)
    with pytest.raises(ValueError, match="there is no column or field"):
        sy.join(big, small, {"data.boss": "number"}, workers=2)


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ({"manager": 3}, "on must be column names, got 3; if the names differ, pass a dictionary"),
        ([F.lower], "on must be column names, got <function"),
        (7, "on must be column names, got 7"),
    ],
)
def test_other_keys_are_refused(people, on, sentence):
    """The sentence names the dictionary."""
    with pytest.raises(TypeError, match=sentence):
        sy.join(people, people, on, workers=2)
