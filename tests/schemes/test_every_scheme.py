"""Promises that every scheme keeps."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import schemes
from steelyard.datasets import zipf_ranks
from steelyard.hashing import mix64
from tests.strategies import BINS, SEEDS, key_streams, settings_of


def check_pickling(scheme, keys, bins, seed, cut):
    router = scheme.router(bins, seed)
    router.route_many(keys[:cut])
    copy = pickle.loads(pickle.dumps(router))
    assert router.route_many(keys[cut:]).tolist() == copy.route_many(keys[cut:]).tolist()
    saved = pickle.loads(pickle.dumps(router.save()))
    assert router.loads.tolist() == scheme.resume(saved).loads.tolist()


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(name, check, id=f"{name}:{check.__name__}")
        for name in schemes.names()
        for check in (*schemes.testing.CHECKS, check_pickling)
    ],
)
@settings(max_examples=40)
@given(data=st.data())
def test_every_scheme_keeps_every_promise(name, check, data):
    """The check passes for generated settings, keys, bins and seeds."""
    keys = data.draw(key_streams(most=150))
    cut = data.draw(st.integers(0, keys.size))
    check(data.draw(settings_of(name)), keys, data.draw(BINS), data.draw(SEEDS), cut)


def assert_every_prefix_is_within(limits, routed, bins):
    """Check each message's bin after the message; the loads of other bins have not changed."""
    order = np.argsort(routed, kind="stable")
    first = np.searchsorted(routed[order], np.arange(bins))
    loads = np.empty(routed.size, np.int64)
    loads[order] = np.arange(routed.size) - first[routed[order]] + 1
    assert (loads <= limits * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["ch", "porc", "porc-graded"])
@given(
    skew=st.floats(0, 3),
    keys=st.integers(1, 5000),
    epsilon=st.floats(0.001, 3),
    slack=st.sampled_from([0, 0, 2.5]),
    bins=BINS,
    seed=st.integers(0, 2**32),
)
def test_every_prefix_stays_within_capacity(name, skew, keys, epsilon, slack, bins, seed):
    """After m messages no bin has more than (1 + epsilon) m / n + slack + 1, at every m."""
    if name == "porc-graded":
        scheme = schemes.named(name, epsilon=epsilon, slack=slack)
    else:
        scheme, slack = schemes.named(name, epsilon=epsilon), 0
    stream = mix64(zipf_ranks(20_000, skew, keys, seed).astype(np.uint64))
    routed = scheme.router(bins, seed).route_many(stream)
    messages = np.arange(1, 20_001)
    assert_every_prefix_is_within((1 + epsilon) * messages / bins + slack + 1, routed, bins)


@pytest.mark.parametrize("name", schemes.names())
def test_schemes_with_the_same_settings_are_equal(name):
    """They have the same hash, also after pickling."""
    scheme = schemes.named(name)
    assert scheme == schemes.named(name)
    assert hash(scheme) == hash(pickle.loads(pickle.dumps(scheme)))


@pytest.mark.parametrize("name", schemes.names())
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(np.empty(0, np.uint64), id="no messages"),
        pytest.param(np.full(50_000, 2**64 - 1, np.uint64), id="one key, all bits set"),
        pytest.param(np.zeros(50_000, np.uint64), id="one key, no bit set"),
        pytest.param(np.arange(50_000, dtype=np.uint64), id="all keys different"),
    ],
)
@pytest.mark.parametrize("bins", [1, 2, 10_000])
def test_every_message_of_an_extreme_stream_is_routed(name, keys, bins):
    """The streams have no message, one key or only different keys; the bins are 1 to 10,000."""
    router = schemes.named(name).router(bins)
    routed = router.route_many(keys)
    assert keys.size == router.loads.sum()
    assert all(0 <= b < bins for b in routed.tolist())


@pytest.mark.parametrize("name", ["ch", "porc", "porc-graded"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-300, 10])
def test_the_bound_holds_for_tiny_and_large_epsilon(name, epsilon):
    """The bound on loads holds at both ends of the range of epsilon."""
    routed = schemes.named(name, epsilon=epsilon).router(100).route_many(np.zeros(3000, np.uint64))
    assert_every_prefix_is_within((1 + epsilon) * np.arange(1, 3001) / 100 + 1, routed, 100)


def test_probes_count_the_bins_checked():
    """A hot key that overflows to many bins needs few probes in porc."""
    keys = np.zeros(10_000, np.uint64)
    assert 20_000 == probes_of("pkg", keys)
    assert 10_000 <= probes_of("porc", keys) <= 100_000


def probes_of(name, keys):
    router = schemes.named(name).router(100)
    router.route_many(keys)
    return router.probes


def test_the_seed_decides_the_first_bin_of_shuffle_grouping():
    """Sources with different seeds begin with different bins."""
    keys = np.zeros(4, np.uint64)
    assert [2, 3, 4, 0] == schemes.named("sg").router(5, seed=7).route_many(keys).tolist()
