"""`map_pandas` gives a function the values of Spark's `mapInPandas`, and keeps its results."""

import pandas as pd
import pytest

import steelyard as sy
from tests.spark.streaming.running import kept

COLUMNS = {
    "a_long": "id",
    "a_long_or_null": "nullif(id, 1)",
    "a_double": "id / 2",
    "a_decimal": "cast(id as decimal(5, 2))",
    "a_flag": "id = 1",
    "a_text": "concat('t', id)",
    "some_bytes": "cast('b' as binary)",
    "a_date": "date '2026-02-03'",
    "a_time": "timestamp '2026-07-01 12:00:00'",
    "a_wall_clock": "timestamp_ntz '2026-07-01 12:00:00'",
    "a_list": "array(id, null)",
    "a_map": "map('k', id)",
    "a_struct": "named_struct('x', id, 'y', 'z')",
}


def seen(frame):
    """Describe the values of each column."""
    names = list(frame.columns)
    values = [[repr(_plain(value)) for value in frame[name]] for name in names]
    return pd.DataFrame({"name": names, "dtype": [str(frame[n].dtype) for n in names], "v": values})


def _plain(value):
    """Return the value; a struct is a Row in Spark and a dict in Arrow, and reads alike."""
    return value.asDict() if hasattr(value, "asDict") else value


@pytest.mark.needs_spark("4.2", reason="integers beside a null stay integers")
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_are_those_of_map_in_pandas(spark, zone):
    """Every type arrives as it does there."""
    schema = "name string, dtype string, v array<string>"
    with kept(spark, ["spark.sql.session.timeZone"]):
        spark.conf.set("spark.sql.session.timeZone", zone)
        rows = spark.range(3).selectExpr("1 AS key", *(f"{v} AS {k}" for k, v in COLUMNS.items()))
        rows = rows.coalesce(1)
        by_spark = rows.mapInPandas(lambda frames: map(seen, frames), schema).collect()
        ours = sy.group_by(rows, "key", workers=1).map_pandas(seen, schema).collect()
    assert {row.name: tuple(row) for row in ours} == {row.name: tuple(row) for row in by_spark}


def test_results_keep_their_values(spark):
    """A function that returns its rows changes none of them, in any time zone."""
    with kept(spark, ["spark.sql.session.timeZone"]):
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        rows = spark.range(300).selectExpr(
            "id % 7 AS key", *(f"{v} AS {k}" for k, v in COLUMNS.items())
        )
        made = sy.group_by(rows, "key", workers=2).map_pandas(lambda frame: frame, rows.schema)
        assert made.schema.simpleString() == rows.schema.simpleString()
        assert sorted(map(str, made.collect())) == sorted(map(str, rows.collect()))


def test_a_function_that_returns_no_frame_fails_with_one_sentence(spark):
    """The sentence is in the error of the job."""
    rows = spark.range(10)
    wrong = sy.group_by(rows, "id", workers=1).map_pandas(lambda frame: 1, "id long")
    with pytest.raises(Exception, match="map_pandas: function '<lambda>' must return a pandas"):
        wrong.collect()
    with pytest.raises(TypeError, match="function must be callable"):
        sy.group_by(rows, "id", workers=1).map_pandas(1, "id long")
