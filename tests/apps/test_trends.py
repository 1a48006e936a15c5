from collections import Counter
from datetime import datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import steelyard as sy
from steelyard.apps.trends import TrendSummary, trending

NOON = datetime(2026, 1, 1, 12)
HOUR = timedelta(hours=1)
WINDOWS = st.lists(
    st.lists(st.integers(0, 12).map(lambda n: f"k{n * n // 12}"), min_size=1, max_size=60),
    min_size=1,
    max_size=4,
)


def summarized(keys, capacity, workers, number):
    """Summarize a window like workers: each has a part of the messages, and states are merged."""
    rows = pa.table({"window": [number] * len(keys), "key": keys})
    top = sy.TopK("key", k=capacity, capacity=capacity)
    wanted = sy.Aggregation([top], by=["window"], schema=rows.schema)
    parts = [
        wanted.add(
            wanted.create(), rows.take(pa.array(range(first, len(keys), workers), pa.int64()))
        )
        for first in range(workers)
    ]
    (hitters,) = wanted.result(wanted.merge(*parts))["top_k(key)"].to_pylist()
    start = NOON + number * HOUR
    counts = {hitter["value"]: hitter["count"] for hitter in hitters}
    error = hitters[0]["error"] if hitters else len(keys)
    return TrendSummary(start, start + HOUR, len(keys), counts, error)


@given(WINDOWS, st.integers(1, 8), st.integers(1, 4))
def test_true_shares_are_within_their_bounds(windows, capacity, workers):
    """The bounds hold for known and unknown keys and any split; the error has its own bound."""
    for number, keys in enumerate(windows):
        summary = summarized(keys, capacity, workers, number)
        for key in {*keys, "never"}:
            share = summary.share(key)
            assert share.least <= keys.count(key) / len(keys) <= share.most
        if summary.counts:
            assert summary.error <= len(keys) / (capacity + 1)
        if len(set(keys)) <= capacity:
            assert Counter(keys) == summary.counts
            assert summary.error == 0


@given(WINDOWS, st.integers(1, 8), st.integers(1, 4))
def test_gains_and_growths_are_at_most_the_true_ones(windows, capacity, k):
    found = [summarized(keys, capacity, 2, n) for n, keys in enumerate(windows)]
    for trend in trending(reversed(found), k):
        number = (trend.start - NOON) // HOUR
        now, before = (
            keys.count(trend.key) / len(keys) for keys in (windows[number], windows[number - 1])
        )
        assert 0 < trend.gain <= now - before + 1e-9
        assert trend.growth <= (now / before if before else float("inf")) * (1 + 1e-9)


def test_the_keys_that_gained_most_come_first():
    """Keys are ordered by share, not by count; the first window has no trends."""
    quiet = TrendSummary(NOON, NOON + HOUR, 100, {"old": 90, "new": 10}, 0)
    loud = TrendSummary(
        NOON + HOUR, NOON + 2 * HOUR, 1000, {"old": 500, "new": 320, "newest": 180}, 0
    )
    alone = TrendSummary(NOON + 9 * HOUR, NOON + 10 * HOUR, 10, {"other": 10}, 0)
    trends = list(trending([loud, alone, quiet], 2))
    assert [("new", 0.22), ("newest", 0.18)] == [(t.key, round(t.gain, 9)) for t in trends]
    assert [3.2, float("inf")] == [round(t.growth, 9) for t in trends]
    assert ["new"] == [t.key for t in trending([quiet, loud], 1)]
    assert ["old", "new"] == loud.top(2)
