"""What every scheme promises, checked on each of them."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import schemes
from tests.strategies import BINS, SEEDS, key_streams, settings_of


def check_batch_routes_as_one_by_one(scheme, keys, bins, seed, cut):
    together = scheme.router(bins, seed).route_many(keys)
    one_by_one = scheme.router(bins, seed)
    assert together.tolist() == [one_by_one.route(int(key)) for key in keys]


def check_loads_count_messages(scheme, keys, bins, seed, cut):
    router = scheme.router(bins, seed)
    routed = router.route_many(keys)
    assert np.bincount(routed, minlength=bins).tolist() == router.loads.tolist()
    assert keys.size == router.messages


def check_saved_state_resumes_exactly(scheme, keys, bins, seed, cut):
    straight = scheme.router(bins, seed)
    expected = straight.route_many(keys)
    stopped = scheme.router(bins, seed)
    stopped.route_many(keys[:cut])
    saved = stopped.save()
    stopped.route_many(keys[cut:])  # what happens after saving does not reach what was saved
    resumed = scheme.resume(pickle.loads(pickle.dumps(saved)))
    assert expected[cut:].tolist() == resumed.route_many(keys[cut:]).tolist()
    assert straight.loads.tolist() == resumed.loads.tolist()
    assert straight.messages == resumed.messages


def check_router_survives_pickling(scheme, keys, bins, seed, cut):
    router = scheme.router(bins, seed)
    router.route_many(keys[:cut])
    copy = pickle.loads(pickle.dumps(router))
    assert router.route_many(keys[cut:]).tolist() == copy.route_many(keys[cut:]).tolist()


def check_signed_hashes_are_the_same_hashes(scheme, keys, bins, seed, cut):
    unsigned = scheme.router(bins, seed).route_many(keys)
    assert unsigned.tolist() == scheme.router(bins, seed).route_many(keys.view(np.int64)).tolist()


def check_every_prefix_stays_within_capacity(scheme, keys, bins, seed, cut):
    if getattr(scheme, "half_life", None) is not None:
        return
    routed = scheme.router(bins, seed).route_many(keys)
    loads = np.zeros(bins)
    for m, b in enumerate(routed, start=1):
        loads[b] += 1
        limit = (1 + scheme.epsilon) * m / bins + getattr(scheme, "slack", 0) + 1
        assert loads.max() <= limit * (1 + 1e-12)


def checks_for(name):
    yield check_batch_routes_as_one_by_one
    yield check_loads_count_messages
    yield check_saved_state_resumes_exactly
    yield check_router_survives_pickling
    yield check_signed_hashes_are_the_same_hashes
    if hasattr(schemes.named(name), "epsilon"):
        yield check_every_prefix_stays_within_capacity


@pytest.mark.parametrize(
    ("name", "check"),
    [
        pytest.param(name, check, id=f"{name}:{check.__name__}")
        for name in schemes.names()
        for check in checks_for(name)
    ],
)
@settings(max_examples=40)
@given(data=st.data())
def test_promise(name, check, data):
    """Every scheme keeps every promise that applies to it."""
    keys = data.draw(key_streams(most=150))
    cut = data.draw(st.integers(0, keys.size))
    check(data.draw(settings_of(name)), keys, data.draw(BINS), data.draw(SEEDS), cut)


@pytest.mark.parametrize("name", schemes.names())
def test_settings_are_values(name):
    """Two schemes with the same settings are equal, hashable and survive pickling."""
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
def test_extremes(name, keys, bins):
    """One bin or ten thousand, one key or only different ones: routed, all of them."""
    router = schemes.named(name).router(bins)
    routed = router.route_many(keys)
    assert keys.size == router.loads.sum()
    assert all(0 <= b < bins for b in routed.tolist())


@pytest.mark.parametrize("name", ["ch", "porc", "porc-graded"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-300, 10])
def test_tiny_and_huge_epsilon(name, epsilon):
    """The bound holds at both ends of what epsilon may be."""
    keys = np.zeros(3000, np.uint64)
    router = schemes.named(name, epsilon=epsilon).router(100)
    routed = router.route_many(keys)
    loads = np.zeros(100)
    for m, b in enumerate(routed, start=1):
        loads[b] += 1
        assert loads[b] <= (1 + epsilon) * m / 100 + 1


def test_shuffle_starts_where_the_seed_says():
    """Sources with other seeds do not all begin with the same worker."""
    keys = np.zeros(4, np.uint64)
    assert [2, 3, 4, 0] == schemes.named("sg").router(5, seed=7).route_many(keys).tolist()
