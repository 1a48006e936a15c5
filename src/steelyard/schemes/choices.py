"""Compute a key's choices in compiled code, with the same results as `steelyard.hashing`."""

from typing import Any

import numpy as np

from steelyard._compiled import compiled

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_HALF = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


@compiled
def mix64(x: Any) -> Any:
    """Mix the bits of a 64-bit number like `steelyard.hashing.mix64`."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def scaled(fraction: Any, size: Any) -> Any:
    """Scale a 32-bit fraction to a whole number below `size`."""
    return np.int64((fraction * np.uint64(size)) >> HALF)


@compiled
def choice(masked_key: Any, salt: Any, bins: Any) -> Any:
    """Return H(key, salt): the bin of the key if its choices 1 to `salt - 1` are full."""
    return scaled(mix64(masked_key + np.uint64(salt) * GOLDEN) >> HALF, bins)


@compiled
def less_loaded_of_two(keys: Any, mask: Any, loads: Any, out: Any) -> None:
    """Route each key to the less loaded of its first two choices.

    Args:
        keys: The hashes of the keys.
        mask: The mask of the seed.
        loads: The loads of the bins, which the function updates.
        out: Filled with the bins.
    """
    for i in range(keys.size):
        key = keys[i] ^ mask
        b = choice(key, 1, loads.size)
        other = choice(key, 2, loads.size)
        if loads[other] < loads[b]:
            b = other
        loads[b] += 1
        out[i] = b
