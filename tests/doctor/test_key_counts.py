"""Numbers from the compact counts equal those from plain counts."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.datasets import zipf_ranks
from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import TOP, KeyCounts
from steelyard.doctor.skew import entropy, zipf_exponent
from steelyard.doctor.work import PYTHON
from tests.strategies import KEY_COUNTS


@given(KEY_COUNTS, st.integers(1, 30))
def test_messages_keys_and_shares_are_exact(plain, workers):
    """Messages, keys, the hottest keys and their shares agree with a Counter."""
    counts = KeyCounts.of(plain, workers)
    best = Counter(plain).most_common()
    assert sum(plain.values()) == counts.messages
    assert len(plain) == counts.keys
    assert best[0][1] == counts.hottest
    assert [number for _, number in best[:TOP]] == [top.messages for top in counts.top]
    assert all(plain[top.name[0]] == top.messages for top in counts.top)
    assert sum(number for _, number in best[:10]) == counts.of_first(10)
    for parts in (counts.by_bucket, *counts.by_partition.values()):
        assert counts.messages == parts.sum()
    folded = counts.partitions(4 * workers).reshape(4, workers).sum(axis=0)
    assert folded.tolist() == counts.partitions(workers).tolist()
    assert counts.keys == counts.keys_by_bucket.sum()


@given(KEY_COUNTS)
def test_entropy_equals_the_entropy_of_the_shares(plain):
    """It is at most the entropy of equally hot keys."""
    counts = KeyCounts.of(plain, workers=1)
    total = sum(plain.values())
    wanted = -sum(c / total * math.log2(c / total) for c in plain.values())
    assert wanted == pytest.approx(entropy(counts), abs=1e-9)
    assert entropy(counts) <= math.log2(counts.keys) + 1e-9


@given(KEY_COUNTS)
def test_a_stream_has_the_counts_it_is_made_from(plain):
    """It has every message once; a drawn sample has only existing keys."""
    counts = KeyCounts.of(plain, workers=1)
    numbers = np.bincount(counts.stream(most=10**9), minlength=counts.keys)
    assert sorted(plain.values(), reverse=True) == numbers.tolist()
    drawn = counts.stream(most=5)
    assert min(5, counts.messages) == drawn.size
    assert 0 <= drawn.min() <= drawn.max() < counts.keys


@given(KEY_COUNTS)
def test_the_curve_falls_from_the_hottest_key_to_the_last(plain):
    """Ranks increase, counts decrease, and the first and the last key are included."""
    curve = KeyCounts.of(plain, workers=1).curve()
    ranks, numbers = zip(*curve, strict=True)
    assert sorted(set(ranks)) == list(ranks)
    assert sorted(numbers, reverse=True) == list(numbers)
    assert (1, max(plain.values())) == curve[0]
    assert (len(plain), min(plain.values())) == curve[-1]


@pytest.mark.parametrize("skew", [0.0, 0.6, 1.0, 1.6])
def test_the_fit_finds_the_exponent_of_a_zipf_stream(skew):
    """A million messages determine it within 0.05; uniform keys have exponent 0."""
    counted = np.bincount(zipf_ranks(1_000_000, skew, keys=2_000, seed=3))
    plain = {str(key): int(number) for key, number in enumerate(counted) if number}
    assert zipf_exponent(KeyCounts.of(plain, workers=1)) == pytest.approx(skew, abs=0.05)


def test_one_key_has_no_exponent():
    assert zipf_exponent(KeyCounts.of({"all": 7}, workers=1)) is None


def test_the_fit_is_right_beyond_the_table_of_ranks():
    """The closed form for later ranks agrees with the sum."""
    keys = 50_000
    plain = {str(rank): max(1, round(1e7 / rank)) for rank in range(1, keys + 1)}
    assert zipf_exponent(KeyCounts.of(plain, workers=1)) == pytest.approx(1.0, abs=0.01)


def test_data_without_rows_is_refused():
    with pytest.raises(ValueError, match="nothing to examine: the data has no rows"):
        KeyCounts.of({}, workers=3)


@settings(max_examples=20)
@given(KEY_COUNTS)
def test_p1_is_exact(plain):
    """It is the share of the hottest key."""
    found = diagnose(KeyCounts.of(plain, workers=3), Job(PYTHON, ("k",), 3))
    assert max(plain.values()) / sum(plain.values()) == found.p1


def test_partitions_that_are_not_counted_are_refused():
    with pytest.raises(ValueError, match="number must divide one of 24, 200, got 7"):
        KeyCounts.of({"a": 1}, workers=3).partitions(7)
