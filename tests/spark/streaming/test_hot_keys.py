"""Sources report the most frequent keys, of any type, with exact counts."""

from collections import Counter
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.executor.stream_source import hot_keys
from steelyard.hashing import spread


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=400),
    st.integers(0, 2000),
    st.integers(65, 512),
)
def test_frequent_keys_are_found_and_counted_exactly(few, many, buckets):
    """A missing key has at most the number of rows of the fullest bucket that is not searched."""
    numbers = np.array([*few, *range(1000, 1000 + many)])
    bucket_of = (spread(numbers) % buckets).astype(np.int32)
    reported = dict(hot_keys(pa.record_batch({"page": numbers}), ("page",), bucket_of))
    truth = Counter(numbers.tolist())
    assert all(count == truth[int(page)] for page, count in reported.items())
    bound = max(1, np.sort(np.bincount(bucket_of, minlength=buckets))[-65])
    expected = {str(k): n for k, n in truth.most_common(20) if n > bound}
    missing = expected.keys() - reported.keys()
    assert all(expected[key] == min(reported.values()) for key in missing)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (pa.array([None, None], pa.string()), "None"),
        (pa.array([b"\xff\x00"] * 2), "b'\\xff\\x00'"),
        (pa.array([2**62] * 2, pa.timestamp("us", "UTC")), None),
        (pa.array([0] * 2, pa.timestamp("us", "Not/AZone")), None),
        (pa.array([datetime(2026, 1, 2)] * 2), "2026-01-02 00:00:00"),
    ],
    ids=["null", "bytes", "beyond Python", "no such zone", "time"],
)
def test_keys_without_a_simple_text_are_reported(values, text):
    """A report does not fail if Python cannot show a key."""
    ((shown, count),) = hot_keys(pa.record_batch({"k": values}), ("k",), np.zeros(2, np.int32))
    assert 2 == count
    assert shown if text is None else text == shown


def test_nested_keys_are_not_reported():
    """Arrow cannot group them, and results do not depend on reports."""
    lists = pa.record_batch({"k": pa.array([[1, 2]] * 2)})
    assert () == hot_keys(lists, ("k",), np.zeros(2, np.int32))
