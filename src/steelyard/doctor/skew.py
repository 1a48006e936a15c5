"""How skewed keys are: shares, entropy, and the Zipf distribution that is nearest.

Counts of keys enter; numbers leave, all of them exact but the fit.
"""

import math

import numpy as np

from steelyard.datasets.ranks import PowerLaw
from steelyard.doctor.key_counts import KeyCounts

_TABLE = 4096
"""Ranks up to here are added one by one; those after it follow a closed form."""

_STEEPEST = 10.0


def entropy(counts: KeyCounts) -> float:
    """The entropy of the keys in bits: that of all messages if each key is equally hot.

    >>> entropy(KeyCounts.of({"a": 2, "b": 1, "c": 1}, workers=1))
    1.5
    """
    values = counts.values.astype(np.float64)
    spent = float((counts.keys_with * values * np.log2(values)).sum()) / counts.messages
    return max(0.0, math.log2(counts.messages) - spent)


def zipf_exponent(counts: KeyCounts) -> float | None:
    """The exponent of the Zipf distribution under which these counts are the likeliest.

    None where there is one key only. Every message counts the same, so the hot keys decide.

    >>> even = KeyCounts.of(dict.fromkeys("abcd", 10), workers=1)
    >>> round(zipf_exponent(even), 3)
    0.0
    """
    if counts.keys == 1:
        return None
    mean = _mean_log_rank(counts)

    def surprise(exponent: float) -> float:
        """Of a message, on average; it has one minimum."""
        return exponent * mean + math.log(_weight(exponent, counts.keys))

    low, high = 0.0, _STEEPEST
    for _ in range(60):
        third = (high - low) / 3
        if surprise(low + third) < surprise(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def _mean_log_rank(counts: KeyCounts) -> float:
    """The mean of ln(rank) over all messages; keys with the same count share their ranks."""
    last = counts.keys_with.cumsum()
    logs = np.array([math.lgamma(rank + 1) for rank in (0, *last.tolist())])
    return float((np.diff(logs) * counts.values).sum()) / counts.messages


def _weight(exponent: float, ranks: int) -> float:
    law = PowerLaw(exponent)
    head = float(law(np.arange(1, min(ranks, _TABLE) + 1)).sum())
    return head + (law.sum(_TABLE + 1, ranks) if ranks > _TABLE else 0.0)
