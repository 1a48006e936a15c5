"""Compare all schemes on one skewed stream, on this machine.

A number of messages and a skew enter; one result per scheme leaves.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard import metrics, schemes
from steelyard.datasets import zipf_ranks
from steelyard.hashing import MOST_BINS, hash_keys
from steelyard.validation import require_whole


@dataclass(frozen=True)
class SchemeResult:
    """The balance, the memory and the speed of one scheme."""

    scheme: str
    imbalance: float
    """The largest load minus the mean load, divided by the mean load."""
    memory: float
    """Key copies on all workers, divided by the number of different keys."""
    hottest_copies: int
    """The number of workers that hold the most frequent key."""
    messages_per_second: float


def compare(
    *, skew: float, workers: int, messages: int, keys: int = 100_000, seed: int = 0
) -> Iterator[SchemeResult]:
    """Route the same Zipf stream with every scheme, and yield one result after the other.

    Args:
        skew: The exponent of the Zipf distribution.
        workers: The number of workers.
        messages: The number of messages.
        keys: The number of keys to draw from.
        seed: The seed of the random keys.

    >>> results = list(compare(skew=1.0, workers=10, messages=1000, keys=100))
    >>> [result.scheme for result in results][:3]
    ['kg', 'sg', 'pkg']
    """
    require_whole("workers", workers, least=1, most=MOST_BINS)
    require_whole("messages", messages, least=1)
    return compare_keys(zipf_ranks(messages, skew, keys, seed), workers)


def compare_keys(ranks: NDArray[np.integer], workers: int) -> Iterator[SchemeResult]:
    """Do the same with the keys of a stream, in the order of its messages.

    Args:
        ranks: The number of the key of each message, from 0.
        workers: The number of workers.

    >>> results = compare_keys(np.array([0, 1, 0, 2]), workers=2)
    >>> next(results).scheme
    'kg'
    """
    require_whole("workers", workers, least=1, most=MOST_BINS)
    hashes = hash_keys(pa.array(ranks, pa.int64()))
    counts = np.bincount(ranks)
    hottest = np.count_nonzero(counts[: counts.argmax()])  # its index among the keys that occur

    def results() -> Iterator[SchemeResult]:
        for name in schemes.names():
            scheme = schemes.named(name)
            scheme.router(workers).route_many(hashes[:1])  # compiles the kernel, or loads it
            seconds = []
            for _ in range(3):
                router = scheme.router(workers)
                begin = time.perf_counter()
                workers_of = router.route_many(hashes)
                seconds.append(time.perf_counter() - begin)
            copies = metrics.key_copies(ranks, workers_of, workers)
            yield SchemeResult(
                scheme=name,
                imbalance=metrics.normalized_imbalance(router.loads),
                memory=float(copies.mean()),
                hottest_copies=int(copies[hottest]),
                messages_per_second=ranks.size / min(seconds),
            )

    return results()
