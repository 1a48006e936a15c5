"""Counts of messages by bucket, checked."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def checked_counts(counts: ArrayLike, buckets: int) -> Floats:
    """Counts per bucket as floats; refused if they are not `buckets` numbers from 0 to 1e300."""
    numbers = np.asarray(counts, np.float64)
    if numbers.shape != (buckets,):
        raise ValueError(
            f"counts must be one number for each of {buckets} buckets, got shape {numbers.shape}"
        )
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1e300)))
    if wrong.size:
        raise ValueError(
            f"counts must be numbers from 0 to 1e300, got {numbers[wrong[0]]} at {wrong[0]}"
        )
    return numbers
