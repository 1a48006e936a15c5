"""The keys that sources tell of: the frequent ones, counted exactly, whatever their types."""

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
    """None is missing that comes more often than the first bucket that is not looked at is full."""
    numbers = np.array([*few, *range(1000, 1000 + many)])
    homes = (spread(numbers) % buckets).astype(np.int32)
    told = dict(hot_keys(pa.record_batch({"page": numbers}), ("page",), homes))
    truth = Counter(numbers.tolist())
    assert all(count == truth[int(page)] for page, count in told.items())
    bound = max(1, np.sort(np.bincount(homes, minlength=buckets))[-65])
    expected = {str(k): n for k, n in truth.most_common(20) if n > bound}
    missing = expected.keys() - told.keys()
    assert all(expected[key] == min(told.values()) for key in missing)


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
def test_keys_that_are_hard_to_show_are_told_of(values, text):
    """A report never fails for the sake of a text."""
    ((told, count),) = hot_keys(pa.record_batch({"k": values}), ("k",), np.zeros(2, np.int32))
    assert 2 == count
    assert told if text is None else text == told


def test_nested_keys_are_not_told_of():
    """Nobody can count them, and nothing depends on it."""
    lists = pa.record_batch({"k": pa.array([[1, 2]] * 2)})
    assert () == hot_keys(lists, ("k",), np.zeros(2, np.int32))
