"""Keys of two types are joined in the type in which Spark compares them."""

import contextlib
import io
import re

import pytest
from pyspark.sql.types import StructType

import steelyard as sy
from steelyard.spark.joins.key_types import compared_type
from tests.spark.joins.frames import assert_as_spark

NUMBERS = "tinyint smallint int bigint float double decimal(10,2) decimal(38,18) decimal(38,0)"
TIMES = ["date", "timestamp", "timestamp_ntz"]
TYPES = [*NUMBERS.split(), *TIMES, "string"]


@pytest.fixture
def text_is_cast(spark):
    """Use ANSI mode, in which Spark compares text and numbers."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


def types_in_spark(spark, one, other):
    """Return the types of both sides of `a = b` in the plan that Spark has analyzed."""
    frame = spark.sql(f"SELECT cast(NULL AS {one}) a, cast(NULL AS {other}) b").where("a = b")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.explain(extended=True)
    analyzed = printed.getvalue().split("== Optimized")[0].split("== Analyzed")[1]
    condition = re.search(r"Filter \((.*)\)", analyzed)[1]
    sides = zip(condition.split(" = "), (one, other), strict=True)
    casts = [(re.search(r"cast\(.* as (.*)\)", side), own) for side, own in sides]
    return [own if cast is None else cast[1] for cast, own in casts]


@pytest.mark.classic_only(reason="the numbers of columns are not printed")
@pytest.mark.parametrize("one", TYPES)
def test_the_type_of_the_comparison_is_that_of_spark(spark, text_is_cast, one):
    """Numbers, times and text are compared among themselves, and text with all."""
    differing = {}
    for other in TYPES:
        if "string" not in (one, other) and (one in TIMES) != (other in TIMES):
            continue
        both = [
            spark.sql(f"SELECT cast(NULL AS {kind}) k").schema[0].dataType for kind in (one, other)
        ]
        found = compared_type(spark, *both)
        expected = types_in_spark(spark, one, other)
        if found is None or [found.simpleString()] * 2 != expected:
            differing[other] = (found, expected)
    assert differing == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int(id)", "id"),
        ("id", "int(id)"),
        ("int(id)", "if(id = 0, double('NaN'), double(id))"),
        ("float(id) / 2", "double(id) / 2"),
        ("cast(id / 4 AS decimal(10, 2))", "cast(id / 2 AS decimal(20, 4))"),
        ("cast(id AS decimal(5, 0))", "id"),
        ("date_add(date'2024-01-01', int(id))", "timestamp'2024-01-01' + id * interval '12' hour"),
        ("string(id)", "id"),
        ("int(id)", "concat('0', id)"),
        ("string(id / 2)", "double(id)"),
        ("string(date_add(date'2024-01-01', int(id)))", "date_add(date'2024-01-03', int(id))"),
    ],
)
def test_keys_of_two_types_are_joined_as_in_spark(spark, text_is_cast, one, other):
    """The columns of the result have their own types, and in a full join the common type."""
    rows = spark.range(0, 120, 1, 2).selectExpr("if(id < 60, 3, id % 20) AS id", "id AS n")
    big = rows.selectExpr(f"{one} AS k", "n")
    small = spark.range(0, 25, 1, 2).selectExpr("if(id > 20, null, id) AS id", "id AS m")
    small = small.selectExpr(f"{other} AS k", "m")
    for how in ("inner", "right", "full"):
        assert_as_spark(big, small, how=how, workers=3)


def test_text_without_ansi_mode_is_refused(spark):
    """Spark would compare text that is no number as null."""
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(ValueError, match="column 'id' is bigint in big and string in small"):
            sy.join(spark.range(3), spark.range(3).selectExpr("string(id) AS id"), "id", workers=2)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("kind", ["binary", "boolean", "array<bigint>"])
def test_types_that_cannot_be_compared_are_refused(spark, kind):
    """The sentence names both types."""
    small = spark.sql(f"SELECT cast(NULL AS {kind}) AS id")
    with pytest.raises(ValueError, match=f"column 'id' is bigint in big and {kind} in small, and"):
        sy.join(spark.range(3), small, "id", workers=2)


def test_a_plan_for_another_type_is_refused(spark):
    """The hashes of the plan are those of ints, and the join compares bigints."""
    rows = spark.range(40).selectExpr("int(id % 3) AS id")
    plan = sy.plan(rows, "id", workers=2)
    with pytest.raises(
        ValueError,
        match=r"column 'id' is int in `big`, .* compares it as bigint; cast",
    ):
        sy.join(rows, spark.range(3), "id", workers=2, routing=plan)


def test_char_columns_of_different_lengths_are_refused(spark):
    """Spark pads char(5) to compare it with char(10), but hashes ignore the padding."""
    frames = []
    for length in (5, 10):
        kind = StructType.fromJson(
            {
                "type": "struct",
                "fields": [
                    {
                        "name": "k",
                        "type": "string",
                        "nullable": True,
                        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": f"char({length})"},
                    }
                ],
            }
        )
        frames.append(spark.createDataFrame([("a",)], kind))
    with pytest.raises(ValueError, match=r"is char\(5\) in big and char\(10\) in small"):
        sy.join(*frames, "k", workers=2)
