"""Measure the skew of keys: entropy, and the nearest Zipf distribution.

Counts of keys enter; numbers leave. The entropy is exact, the Zipf exponent is a fit.
"""

import math

import numpy as np

from steelyard.datasets.ranks import PowerLaw
from steelyard.doctor.key_counts import KeyCounts

_TABLE = 4096
"""Ranks up to this one are added one by one; the sum of later ranks has a closed form."""

_STEEPEST = 10.0


def entropy(counts: KeyCounts) -> float:
    """Return the entropy of the keys in bits.

    >>> entropy(KeyCounts.of({"a": 2, "b": 1, "c": 1}, workers=1))
    1.5
    """
    values = counts.values.astype(np.float64)
    spent = float((counts.keys_with * values * np.log2(values)).sum()) / counts.messages
    return max(0.0, math.log2(counts.messages) - spent)


def zipf_exponent(counts: KeyCounts) -> float | None:
    """Fit a Zipf distribution by maximum likelihood, and return its exponent.

    The result is None if there is only one key. Every message has the same weight, so the hot keys
    dominate the fit.

    >>> even = KeyCounts.of(dict.fromkeys("abcd", 10), workers=1)
    >>> round(zipf_exponent(even), 3)
    0.0
    """
    if counts.keys == 1:
        return None
    mean = _mean_log_rank(counts)

    def negative_log_likelihood(exponent: float) -> float:
        """Return the mean over the messages; it has one minimum."""
        return exponent * mean + math.log(_weight(exponent, counts.keys))

    low, high = 0.0, _STEEPEST
    for _ in range(60):
        third = (high - low) / 3
        if negative_log_likelihood(low + third) < negative_log_likelihood(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def _mean_log_rank(counts: KeyCounts) -> float:
    """Return the mean of ln(rank) over all messages; keys with equal counts share their ranks."""
    last = counts.keys_with.cumsum()
    logs = np.array([math.lgamma(rank + 1) for rank in (0, *last.tolist())])
    return float((np.diff(logs) * counts.values).sum()) / counts.messages


def _weight(exponent: float, ranks: int) -> float:
    law = PowerLaw(exponent)
    head = float(law(np.arange(1, min(ranks, _TABLE) + 1)).sum())
    return head + (law.sum(_TABLE + 1, ranks) if ranks > _TABLE else 0.0)
