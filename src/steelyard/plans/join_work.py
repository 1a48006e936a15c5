"""Estimate the work of a join by bucket: the rows that enter, and the pairs that leave.

Counts of both frames enter; the buckets whose pairs must be counted leave, and then the work of
each bucket, from which a planner makes the plan.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.plans.bucket_counts import Floats

WATCHED = 512
"""The number of buckets whose keys are counted one by one. Sixteen times as many are only counted
together, by default."""

_TYPICAL = 64
"""Ordinary buckets that are counted exactly to estimate the pairs of all others."""

_NOTICED = 0.05
"""Smallest excess of pairs in a bucket that matters, as a fraction of a worker's share."""

_HEAVY = 0.25
"""The same for the excess of rows of `small`, as a fraction of a worker's share of all rows."""

_DEVIATIONS = 8
"""A bucket whose rows exceed the median by more than this number of standard deviations has a hot
key."""

Buckets = NDArray[np.int64]


@dataclass(frozen=True)
class SmallCounts:
    """The rows of `small` by bucket, and its keys in the watched buckets.

    Args:
        watched: The buckets whose keys are counted one by one.
        rows: The rows of each bucket.
        most: The rows of the most frequent key of each watched bucket.
        keys: The number of keys of each watched bucket.
    """

    watched: Buckets
    rows: Floats
    most: Floats
    keys: Floats

    @property
    def usual(self) -> float:
        """The usual number of rows of a key."""
        found = self.keys[self.watched] > 0
        if not found.any():
            return 1.0
        watched = self.watched[found]
        return float(np.median(self.rows[watched] / self.keys[watched]))

    @property
    def excess(self) -> Floats:
        """The rows of each bucket above the median."""
        above: Floats = np.maximum(self.rows - np.median(self.rows), 0)
        return above

    def matches(self) -> Floats:
        """Return the most rows that a key of each bucket may have; the usual number if unknown.

        The keys of a bucket that is not watched are unknown. If the bucket has clearly more rows
        than others, one key may have all of them.
        """
        usual, median = self.usual, np.median(self.rows)
        noise = _DEVIATIONS * (np.sqrt(usual * median) + usual)
        matches: Floats = np.where(self.excess > noise, self.excess + usual, usual)
        matches[self.watched] = np.maximum(self.most[self.watched], usual)
        return matches


@dataclass(frozen=True)
class Suspects:
    """The buckets whose pairs must be counted.

    Args:
        hot: Buckets that may have many more pairs than their rows suggest.
        typical: Ordinary buckets, as a sample of all others.
    """

    hot: Buckets
    typical: Buckets

    @property
    def buckets(self) -> Buckets:
        """All of these buckets."""
        return np.concatenate([self.hot, self.typical])


def most_frequent(big: Floats) -> Buckets:
    """Return the buckets with the most rows of `big`, which should be watched."""
    return _largest(big)


def suspects(big: Floats, small: SmallCounts, workers: int) -> Suspects | None:
    """Return the buckets whose pairs must be counted; None if a plan for `big` alone is as good.

    A plan for `big` alone balances the pairs, too, if a row has about the same number of matches in
    every bucket that matters.

    Args:
        big: The rows of `big` by bucket.
        small: The counts of `small`.
        workers: The number of workers.

    >>> watched = np.arange(4)
    >>> unique = SmallCounts(watched, np.full(4, 5.0), np.ones(4), np.full(4, 5.0))
    >>> suspects(np.array([900.0, 9, 9, 9]), unique, workers=4) is None
    True
    >>> rows, most = np.array([50.0, 5, 5, 5]), np.array([46.0, 1, 1, 1])
    >>> hot = SmallCounts(watched, rows, most, np.full(4, 5.0))
    >>> suspects(np.array([900.0, 9, 9, 9]), hot, workers=4).hot.tolist()
    [0]
    """
    more = big * (small.matches() / small.usual - 1)
    share = big.sum() / workers
    is_heavy = small.excess > _HEAVY * (big.sum() + small.rows.sum()) / workers
    if not (more > _NOTICED * share).any() and not is_heavy.any():
        return None
    hot = np.union1d(_largest(more), np.flatnonzero(is_heavy))
    others = np.setdiff1d(np.flatnonzero(big), hot)
    spread = np.linspace(0, others.size - 1, min(_TYPICAL, others.size)).astype(np.int64)
    return Suspects(hot, others[spread])


def work_of(big: Floats, small: Floats, found: Suspects, pairs: Floats) -> Floats:
    """Return the work of every bucket: its rows in both frames and its pairs.

    Args:
        big: The rows of `big` by bucket.
        small: The rows of `small` by bucket.
        found: The buckets whose pairs were counted.
        pairs: The pairs of these buckets, at their numbers.
    """
    rows = big[found.typical].sum()
    estimated = big * (pairs[found.typical].sum() / rows if rows else 0.0)
    estimated[found.buckets] = pairs[found.buckets]
    work: Floats = big + small + estimated
    return work


def _largest(numbers: Floats) -> Buckets:
    """Return the positions of the largest positive numbers."""
    order = np.argsort(-numbers, kind="stable")[:WATCHED]
    return order[numbers[order] > 0]
