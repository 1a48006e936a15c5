"""Every compiled loop gives the same results as a plain Python loop, its twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import hashing, schemes
from steelyard.schemes import choices
from steelyard.schemes.head_choices import enough_choices
from steelyard.schemes.space_saving import SpaceSaving, observe
from tests import plain
from tests.strategies import SEEDS, UINT64, key_streams, settings_of


@pytest.mark.parametrize("name", schemes.names())
@given(data=st.data())
def test_a_router_agrees_with_its_plain_twin(name, data):
    """The compiled loop and the plain loop agree on every message."""
    scheme = data.draw(settings_of(name))
    keys = data.draw(key_streams())
    bins = data.draw(st.integers(1, 40))
    seed = data.draw(SEEDS)
    expected = plain.TWINS[name](scheme, [int(key) for key in keys], bins, seed)
    assert expected == scheme.router(bins, seed).route_many(keys).tolist()


@given(UINT64, SEEDS, st.integers(1, 1000), st.integers(1, 2**31 - 1))
def test_choices_are_the_same_in_python_numpy_and_compiled(key, seed, salt, bins):
    """Three implementations compute the same choice."""
    mask = hashing.seed_mask(seed)
    assert plain.seed_mask(seed) == mask
    assert plain.mix64(key) == hashing.mix64(np.array([key], np.uint64))[0]
    assert plain.mix64(key) == choices.mix64(np.uint64(key))
    assert plain.choice(key, salt, bins, seed) == choices.choice(np.uint64(key) ^ mask, salt, bins)


@given(st.lists(st.integers(0, 30)), st.integers(1, 12))
def test_space_saving_agrees_with_its_plain_twin(keys, size):
    """The indexed summary and the plain list agree after every key."""
    summary, twin = SpaceSaving.of_size(size), plain.SpaceSaving(size)
    for key in keys:
        assert twin.observe(key) == observe(summary, np.uint64(key))
        assert [count for _, count in twin.counters] == summary.counts.tolist()


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 12))
def test_space_saving_never_underestimates(keys, size):
    """An estimate is at least the true count, and at most m / size above it."""
    summary = SpaceSaving.of_size(size)
    for m, key in enumerate(keys, start=1):
        estimate = observe(summary, np.uint64(key))
        true = keys[:m].count(key)
        assert true <= estimate <= true + m / size


@given(st.lists(st.floats(0.001, 0.3), max_size=8), st.integers(1, 60), st.floats(1e-5, 0.1))
def test_enough_choices_agrees_with_its_plain_twin(shares, bins, tolerance):
    """The number of choices of head keys is the smallest that the formula allows."""
    head = sorted((p / max(1, sum(shares)) for p in shares), reverse=True)
    assert plain.enough_choices(head, bins, tolerance) == enough_choices(
        np.array(head), bins, tolerance
    )
