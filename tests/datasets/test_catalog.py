"""The data sets agree with the paper's table, and do not depend on how they are split."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import datasets
from steelyard.datasets.catalog import DAILY_RATE
from steelyard.datasets.ranks import TABLE, PowerLaw, RankShape
from steelyard.hashing import mix64, seed_mask

MESSAGES = 400_000


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("wp", {1: 0.0932, 10: 0.1226, 100: 0.2134}),
        ("wp-steep", {1: 0.09315, 10: 0.2570, 100: 0.4238}),
        ("tw", {1: 0.0267, 10: 0.1411, 100: 0.3491}),
    ],
)
def test_hottest_keys_have_their_share(name, shares):
    """The share is exact in the distribution, and within 4 sigma in a random draw."""
    shape = datasets.named(name).shape
    drawn = shape.draw(0, MESSAGES, seed=3)
    for first, share in shares.items():
        assert shape.share(first) == pytest.approx(share, abs=2e-4)
        sigma = np.sqrt(share * (1 - share) / MESSAGES)
        assert np.mean(drawn < first) == pytest.approx(shape.share(first), abs=4 * sigma)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "keys"), [("wp", 2_901_625), ("wp-steep", 2_903_226)])
def test_a_day_has_the_number_of_keys_in_the_paper(name, keys):
    """The 22 million messages have 2.9 million different keys."""
    day = datasets.named(name)
    seen = np.zeros(day.keys, bool)
    for chunk in day.chunks():
        seen[chunk.keys] = True
    assert seen.sum() == pytest.approx(keys, rel=0.002)


@given(
    st.sampled_from(["zf", "wp", "wp-steep", "tw"]),
    st.integers(1, 3000),
    st.lists(st.integers(0, 3000), max_size=6),
    st.integers(0, 2**63),
    st.none() | st.integers(1, 500),
)
def test_parts_make_up_the_whole(name, messages, cuts, seed, drift):
    """A stream that is split anywhere has the same messages at the same times."""
    fraction = messages / datasets.named(name).messages
    stream = datasets.named(name, fraction=fraction, seed=seed, drift=drift)
    assert stream.messages == messages
    whole = stream.part(0, messages)
    edges = sorted({0, messages, *(min(cut, messages) for cut in cuts)})
    parts = [stream.part(a, b - a) for a, b in pairwise(edges)]
    assert np.concatenate([p.keys for p in parts]).tolist() == whole.keys.tolist()
    assert np.concatenate([p.times for p in parts]).tolist() == whole.times.tolist()
    assert (np.diff(whole.times) >= 0).all()
    assert 0 <= whole.times[0] <= whole.times[-1] < stream.seconds
    assert stream.time_of(messages - 1) == whole.times[-1]


@given(st.floats(0, 3), st.floats(0, 20), st.integers(1, 3000), st.integers(0, 2**32))
def test_draws_agree_with_a_plain_search(exponent, shift, ranks, seed):
    """The compiled draw with its guide finds the same ranks as a binary search."""
    law = PowerLaw(exponent, shift)
    shape = RankShape(ranks, law)
    bits = mix64(mix64(np.arange(50, 550, dtype=np.uint64) ^ seed_mask(seed))) >> np.uint64(11)
    reach = law(np.arange(1, ranks + 1)).cumsum()
    plain = reach.searchsorted(bits * 2.0**-53 * shape.total, "right")
    assert shape.draw(50, 500, seed).tolist() == plain.tolist()


@pytest.mark.parametrize("exponent", [0.5, 0.95, 1.0, 1.067, 1.316, 2.0])
def test_the_tail_has_the_weight_of_its_ranks(exponent):
    """The closed form equals the sum, and draws from the tail follow the same distribution."""
    law = PowerLaw(exponent, shift=3, scale=7)
    last = TABLE + 200_000
    weights = law(np.arange(TABLE + 1, last + 1))
    assert law.sum(TABLE + 1, last) == pytest.approx(weights.sum(), rel=1e-10)
    shape = RankShape(last, lambda ranks: np.where(ranks == 1, 1e-9, 0.0), law)
    drawn = shape.draw(0, 200_000, seed=1)
    assert TABLE <= drawn[drawn > 0].min() <= drawn.max() < last
    quarters = np.searchsorted(weights.cumsum() / weights.sum(), [0.25, 0.5, 0.75]) + TABLE
    assert np.quantile(drawn, [0.25, 0.5, 0.75]) == pytest.approx(quarters, abs=3000)


def test_hot_keys_change_with_drift():
    """The 50 hottest keys are different after each `drift` messages."""
    stream = datasets.named("zf", skew=1.0, fraction=0.04, drift=20_000)
    hottest = [
        np.argsort(np.bincount(stream.part(first, 20_000).keys, minlength=stream.keys))[-50:]
        for first in range(0, stream.messages, 20_000)
    ]
    assert len(hottest) == 20
    assert len(set(np.concatenate(hottest).tolist())) > 0.95 * 20 * 50


def test_hours_have_their_rates():
    """The messages of each hour follow `DAILY_RATE`, and a steady data set has equal intervals."""
    day = datasets.named("wp", fraction=0.01)
    times = np.concatenate([chunk.times for chunk in day.chunks()])
    by_hour = np.bincount((times // 3600).astype(int), minlength=24)
    assert by_hour / by_hour.mean() == pytest.approx(DAILY_RATE, abs=1e-3)
    flat = np.concatenate([chunk.times for chunk in day.steady().chunks()])
    assert np.diff(flat) == pytest.approx(86400 / day.messages, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: datasets.named("wiki"), "no data set is named 'wiki'; the data sets are: zf, wp"),
        (lambda: datasets.named("wp", skew=1.0), "skew and keys are settings of the data set 'zf'"),
        (lambda: datasets.named("zf", fraction=0), "fraction must be a number above 0, got 0"),
        (lambda: datasets.named("zf", skew=-1), "skew must be a number at least 0"),
        (lambda: datasets.named("zf", keys=0), "keys must be a whole number"),
        (lambda: datasets.named("zf", drift=0), "drift must be a whole number"),
        (lambda: datasets.named("zf", seed=-1), "seed must be a whole number"),
    ],
)
def test_bad_settings_are_refused(make, sentence):
    """The error message names the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        make()
