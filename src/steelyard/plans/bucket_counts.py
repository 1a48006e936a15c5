"""Check counts of messages by bucket."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def checked_counts(counts: ArrayLike, buckets: int) -> Floats:
    """Return the counts as floats; raise unless they are `buckets` numbers from 0 to 1e300."""
    numbers = np.asarray(counts, np.float64)
    if numbers.shape != (buckets,):
        raise ValueError(
            f"counts must have one number for each of {buckets} buckets, got shape {numbers.shape}"
        )
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers <= 1e300)))
    if wrong.size:
        raise ValueError(
            f"counts must be numbers from 0 to 1e300, got {numbers[wrong[0]]} at {wrong[0]}"
        )
    return numbers
