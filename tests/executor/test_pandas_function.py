"""A function of pandas DataFrames gets and returns values as in Spark's `mapInPandas`."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from steelyard.executor.pandas_function import OnPandas, together

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


def test_columns_without_names_are_matched_by_position():
    """As in Spark; a frame without rows and columns is a result without rows."""
    assert run(lambda frame: frame.set_axis(range(3), axis=1)) == ROWS
    assert run(lambda frame: pd.DataFrame()) == SCHEMA.empty_table()


def test_the_key_comes_first_if_the_function_takes_it():
    """It has one value for each column, of the same type as in the frame."""
    seen = []
    work = OnPandas(lambda key, frame: seen.append(key) or frame, SCHEMA, "UTC", takes_key=True)
    assert work.of_key(ROWS.slice(0, 1), ["n", "page"]) == ROWS.slice(0, 1)
    assert seen == [(np.int64(1), "a")]
    assert isinstance(seen[0][0], np.int64)


def test_results_of_several_frames_are_put_together():
    """Rows are numbered again, and frames without columns are left out."""
    parts = [pd.DataFrame({"n": [1, 2]}), pd.DataFrame(), pd.DataFrame({"n": [3]})]
    assert together(parts).equals(pd.DataFrame({"n": [1, 2, 3]}))
    assert together([pd.DataFrame()]).empty


def named(frame):
    """Return a frame with too few columns."""
    return frame[["n"]]


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        (lambda frame: None, TypeError, "must return a pandas DataFrame, got NoneType"),
        (lambda frame: frame["n"], TypeError, "must return a pandas DataFrame, got Series"),
        (
            named,
            ValueError,
            "must return the columns of the schema, page, at, n, got n",
        ),
        (lambda frame: frame[[]], ValueError, "the schema, page, at, n, got none"),
        (lambda frame: frame.assign(more=1), ValueError, "page, at, n, got page, at, n, more"),
        (lambda frame: frame.iloc[:, [0, 1, 2, 2]], ValueError, "got page, at, n, n"),
        (lambda frame: pd.DataFrame([(1, 2)]), ValueError, "page, at, n, got 0, 1"),
        (
            lambda frame: frame.assign(n="many"),
            ValueError,
            "must return int64 in column 'n', as the schema says, got object values that do not",
        ),
        (lambda frame: frame.assign(n=2**70), ValueError, "int64 in column 'n', as the schema"),
        (lambda frame: frame.assign(n=0.5), ValueError, "got float64 values that do not fit"),
    ],
    ids=[
        "nothing",
        "a column",
        "too few columns",
        "no columns",
        "too many columns",
        "a column twice",
        "too few columns without names",
        "other values",
        "a large number",
        "a fraction",
    ],
)
def test_a_wrong_result_is_refused_in_one_sentence(function, error, sentence):
    """The sentence names the function, its result and the schema."""
    with pytest.raises(error, match=f"map_pandas: function '{function.__name__}' .*{sentence}"):
        run(function)
