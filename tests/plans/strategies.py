"""Counts and planners for the property tests of plans."""

import numpy as np
from hypothesis import strategies as st

from steelyard.plans import Planner


@st.composite
def bucket_counts(draw):
    """Draw counts or weights of 64 buckets, from uniform to all in one bucket, with zeros."""
    skew = draw(st.floats(0, 5))
    zeros = draw(st.integers(0, 63))
    seed = draw(st.integers(0, 2**32))
    weights = np.arange(1, 65) ** -skew * draw(st.sampled_from([1.0, 100.0, 1e9]))
    weights[64 - zeros :] = 0
    weights[0] *= draw(st.sampled_from([1, 10_000]))
    whole = draw(st.booleans())
    return np.random.default_rng(seed).permutation(np.floor(weights * 10) if whole else weights)


PLANNERS = st.builds(
    lambda bins, epsilon, weights, decay: Planner(
        bins, epsilon, buckets=64, capacities=weights and weights[:bins], decay=decay
    ),
    decay=st.sampled_from([0, 0.5, 0.9, 1]),
    bins=st.integers(1, 64),
    epsilon=st.sampled_from([1e-12, 0.001, 0.01, 0.1, 1.0, 10.0]),
    weights=st.one_of(
        st.none(),
        st.lists(st.floats(0.1, 10), min_size=64, max_size=64),
        st.lists(st.floats(1e-6, 1e6), min_size=64, max_size=64),
    ),
)
