"""The work of a join is estimated from few counts, and hot pairs are counted exactly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.hashing import mix64
from steelyard.plans.join_work import SmallCounts, most_frequent, suspects, work_of

BUCKETS, WORKERS = 2048, 8


def counted(keys, rows):
    """Return the rows by bucket of keys with these numbers of rows."""
    return np.bincount(bucket_of(keys), rows, BUCKETS)


def bucket_of(keys):
    """Return the buckets of keys."""
    return (mix64(np.asarray(keys, np.uint64)) % np.uint64(BUCKETS)).astype(np.int64)


def small_counts(keys, rows, watched):
    """Count a frame with these keys, as a pass over it would."""
    most = np.zeros(BUCKETS)
    np.maximum.at(most, bucket_of(keys), rows)
    numbers = np.bincount(bucket_of(keys), minlength=BUCKETS)
    unseen = np.setdiff1d(np.arange(BUCKETS), watched)
    most[unseen] = counted(keys, rows)[unseen]
    return SmallCounts(watched, counted(keys, rows), most, numbers.astype(float))


def estimated(rows, others):
    """Return the estimated and the true work of each bucket of a join of keys 0, 1, ..."""
    keys = np.arange(len(rows))
    big = counted(keys, rows)
    small = small_counts(keys, others, most_frequent(big))
    found = suspects(big, small, WORKERS)
    pairs = counted(keys, rows * others)
    true = big + small.rows + pairs
    if found is None:
        return None, true
    exact = np.zeros(BUCKETS)
    exact[found.buckets] = pairs[found.buckets]
    return work_of(big, small.rows, found, exact), true


@given(st.integers(1, 5), st.floats(0, 1.5), st.integers(0, 20))
def test_a_plan_for_big_is_enough_if_keys_have_as_many_matches(matches, skew, seed):
    """No pairs are counted: neither with unique keys nor with the same number of rows for each."""
    rows = np.random.default_rng(seed).permutation(1e6 * np.arange(1, 20_001) ** -skew // 1 + 1)
    assert estimated(rows, np.full(20_000, float(matches)))[0] is None


@given(st.sampled_from([0.02, 0.2, 0.5]), st.sampled_from([0.02, 0.2, 0.5]), st.integers(0, 20))
def test_the_pairs_of_a_hot_key_are_known_exactly(in_big, in_small, seed):
    """The hot key has a share of both frames, and is not the most frequent key of its bucket."""
    rng = np.random.default_rng(seed)
    rows, others = rng.integers(1, 20, 20_000) * 1.0, rng.integers(1, 3, 20_000) * 1.0
    hot = rng.integers(20_000)
    rows[hot], others[hot] = in_big * rows.sum(), in_small * others.sum()
    work, true = estimated(rows, others)
    assert work is not None
    bucket = bucket_of([hot])[0]
    assert work[bucket] == true[bucket]
    assert abs(work.sum() / true.sum() - 1) < 0.2


@given(st.integers(0, 20))
def test_a_key_with_many_rows_in_small_only_is_noticed(seed):
    """A few rows of `big` meet many rows of `small`."""
    rng = np.random.default_rng(seed)
    rows, others = np.full(20_000, 10.0), np.ones(20_000)
    hot = rng.integers(20_000)
    others[hot] = 20_000
    work, true = estimated(rows, others)
    assert work is not None
    assert work.argmax() == true.argmax() == bucket_of([hot])[0]


def test_empty_frames_need_no_plan_for_pairs():
    """There is nothing to divide by."""
    nothing = np.zeros(BUCKETS)
    small = SmallCounts(np.array([], np.int64), nothing, nothing, nothing)
    assert suspects(nothing, small, WORKERS) is None
