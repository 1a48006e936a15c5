"""Keys with a Zipf distribution."""

import numpy as np
from numpy.typing import NDArray

from steelyard.validation import require_between, require_whole


def zipf_probabilities(skew: float, keys: int) -> NDArray[np.float64]:
    """Return the share of each key, the hottest first; rank r has a weight of 1/r^skew.

    >>> zipf_probabilities(1.0, 3).round(3)
    array([0.545, 0.273, 0.182])
    """
    require_between("skew", skew, least=0, most=10)
    require_whole("keys", keys, least=1)
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -skew
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def zipf_ranks(
    messages: int, skew: float = 1.0, keys: int = 100_000, seed: int = 0
) -> NDArray[np.uint32]:
    """Return the ranks of the keys of random messages; 0 is the hottest key.

    Args:
        messages: The number of messages.
        skew: The Zipf exponent.
        keys: The number of keys.
        seed: The seed of the random numbers.

    >>> ranks = zipf_ranks(1000, skew=1.4, keys=50, seed=1)
    >>> int(np.bincount(ranks).argmax())
    0
    """
    require_whole("messages", messages, least=0)
    reach = zipf_probabilities(skew, keys).cumsum()
    draws = np.random.default_rng(seed).random(messages)
    return np.minimum(reach.searchsorted(draws, "right"), keys - 1).astype(np.uint32)
