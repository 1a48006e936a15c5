"""The streams of the benchmarks: Zipf over 100,000 keys, with one seed."""

from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard.datasets import zipf_ranks
from steelyard.hashing import hash_keys

MESSAGES = 5_000_000


@cache
def ranks(skew: float, messages: int = MESSAGES) -> NDArray[np.uint32]:
    return zipf_ranks(messages, skew, seed=7)


@cache
def hashes(skew: float, messages: int = MESSAGES) -> NDArray[np.uint64]:
    return hash_keys(pa.array(ranks(skew, messages), pa.int64()))
