"""A skewed stream through every scheme: how they compare, on this machine.

A number of messages and a skew enter; one line per scheme leaves.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from steelyard import metrics, schemes
from steelyard.datasets import zipf_ranks
from steelyard.hashing import MOST_BINS, hash_keys
from steelyard.validation import require_whole


@dataclass(frozen=True)
class SchemeResult:
    """What a scheme made of the stream."""

    scheme: str
    imbalance: float
    """The most loaded worker's surplus over the mean, as a part of the mean."""
    memory: float
    """Keys on all workers, against different keys."""
    hottest_copies: int
    """Workers that hold the hottest key."""
    messages_per_second: float


def compare(
    *, skew: float, workers: int, messages: int, keys: int = 100_000, seed: int = 0
) -> Iterator[SchemeResult]:
    """Route the same Zipf stream by every scheme, one outcome after the other.

    >>> outcomes = list(compare(skew=1.0, workers=10, messages=1000, keys=100))
    >>> [outcome.scheme for outcome in outcomes][:3]
    ['kg', 'sg', 'pkg']
    """
    require_whole("workers", workers, least=1, most=MOST_BINS)
    require_whole("messages", messages, least=1)
    ranks = zipf_ranks(messages, skew, keys, seed)
    hashes = hash_keys(pa.array(ranks, pa.int64()))
    counts = np.bincount(ranks)
    hottest = np.count_nonzero(counts[: counts.argmax()])  # its place among the keys that occur

    def outcomes() -> Iterator[SchemeResult]:
        for name in schemes.names():
            scheme = schemes.named(name)
            scheme.router(workers).route_many(hashes[:1])  # compiles, or loads what was compiled
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
                messages_per_second=messages / min(seconds),
            )

    return outcomes()
