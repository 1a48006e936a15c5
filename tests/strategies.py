"""The Hypothesis strategies of the property tests."""

import numpy as np
from hypothesis import strategies as st

from steelyard import schemes

UINT64 = st.integers(0, 2**64 - 1)


@st.composite
def key_streams(draw, most=400):
    """Draw the hashes of a stream, with all keys equal, all different, or anything between."""
    keys = draw(st.lists(UINT64, min_size=1, max_size=30, unique=True))
    keys += [0, 2**64 - 1]
    length = draw(st.integers(0, most))
    skew = draw(st.floats(0, 4))
    seed = draw(st.integers(0, 2**32))
    weights = np.arange(1, len(keys) + 1) ** -skew
    rng = np.random.default_rng(seed)
    picks = rng.choice(len(keys), length, p=weights / weights.sum())
    return np.array(keys, np.uint64)[picks]


@st.composite
def settings_of(draw, name):
    """Draw a scheme of this name with random settings."""
    epsilon = st.floats(0.001, 3)
    drawn = {}
    if name in ("ch", "porc", "porc-graded"):
        drawn["epsilon"] = draw(epsilon)
    if name == "porc-graded":
        drawn["half_life"] = draw(st.one_of(st.none(), st.integers(1, 40)))
        drawn["slack"] = draw(st.sampled_from([0, 0.5, 3]))
        drawn["grades"] = draw(st.integers(2, 9))
        drawn["heavy_share"] = draw(st.floats(0.01, 1))
    if name == "salting":
        drawn["salts"] = draw(st.integers(1, 20))
    if name in ("dchoices", "wchoices"):
        drawn["head_share"] = draw(st.floats(0.05, 1))
    if name == "dchoices":
        drawn["refresh"] = draw(st.one_of(st.none(), st.integers(1, 100)))
        drawn["tolerance"] = draw(st.floats(1e-5, 0.5))
    return schemes.named(name, **drawn)


SEEDS = st.integers(0, 2**64 - 1)
BINS = st.one_of(st.integers(1, 20), st.integers(21, 1000))


KEY_COUNTS = st.dictionaries(
    st.none() | st.text(max_size=80), st.integers(1, 3000), min_size=1, max_size=40
)
"""The number of rows of each key; keys may be null or any text."""
