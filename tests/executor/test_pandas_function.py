"""A function of pandas DataFrames gets and returns values as in Spark's `mapInPandas`."""

import datetime

import pandas as pd
import pyarrow as pa
import pytest

from steelyard.executor.pandas_function import OnPandas

NOON = datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC)
SCHEMA = pa.schema([("page", pa.string()), ("at", pa.timestamp("us", "UTC")), ("n", pa.int64())])
ROWS = pa.table({"page": ["a", None], "at": [NOON, None], "n": [1, None]}, schema=SCHEMA)


def run(function, schema=SCHEMA, zone="Asia/Tokyo"):
    return OnPandas(function, schema, zone)(ROWS)


def test_times_are_local_and_come_back_as_they_were():
    """The function sees the wall clock of the session's time zone."""
    seen = []

    def note(frame):
        seen.extend(frame["at"])
        return frame

    assert run(note) == ROWS
    assert seen[0] == pd.Timestamp("2026-07-01 21:00")
    assert seen[1] is pd.NaT


def test_a_large_integer_beside_a_null_keeps_its_value():
    """A floating-point number has only 53 bits."""
    large = pa.table({"n": pa.array([2**62 + 1, None])})
    frames = []
    OnPandas(lambda frame: frames.append(frame) or frame, large.schema, "UTC")(large)
    assert frames[0]["n"].tolist() == [2**62 + 1, pd.NA]


def test_the_columns_may_have_another_order():
    """The schema decides about the order."""
    assert run(lambda frame: frame[["n", "at", "page"]]).column_names == SCHEMA.names


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        (lambda frame: None, TypeError, "must return a pandas DataFrame, got NoneType"),
        (lambda frame: frame["n"], TypeError, "must return a pandas DataFrame, got Series"),
        (
            lambda frame: frame[["n"]],
            ValueError,
            "columns page, at, n, but the function returned n",
        ),
        (lambda frame: frame[[]], ValueError, "but the function returned none"),
        (
            lambda frame: frame.assign(n="many"),
            ValueError,
            "the schema has int64 for column 'n', but the function returned",
        ),
    ],
    ids=["nothing", "a column", "other columns", "no columns", "other values"],
)
def test_a_wrong_result_is_refused_in_one_sentence(function, error, sentence):
    """The sentence names the result of the function and the schema."""
    with pytest.raises(error, match=f"map_pandas: .*{sentence}"):
        run(function)
