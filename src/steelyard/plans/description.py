"""Describe a routing plan in numbers and words.

The counts and shares of a plan enter; a description that can be printed leaves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LISTED = 10
"""The number of hot buckets that a description lists; of the others it gives the number only."""


@dataclass(frozen=True)
class HotBucket:
    """A bucket that goes to more than one worker."""

    bucket: int
    share: float
    """The bucket's share of the stream."""
    workers: int
    """The number of workers that get messages of the bucket."""

    def __str__(self) -> str:
        share = f"{100 * self.share:6.2f} % of the stream"
        return f"  bucket {self.bucket:>7} {share}, on {self.workers:,} workers"


@dataclass(frozen=True)
class PlanDescription:
    """The effect of a plan on the stream that it was made for; `str` gives it in a few lines.

    >>> hot = HotBucket(bucket=7, share=0.3, workers=2)
    >>> print(PlanDescription(4, 64, (hot,), 1.9, 1.0, buckets_used=64, bucket_copies=65))
    4 workers, 64 buckets of keys
    largest worker   1.000 of its fair share (1.900 by key grouping)
    copies of a key  1.016 on average (65 copies of 64 buckets)
    hot              1 bucket is split
      bucket       7  30.00 % of the stream, on 2 workers

    >>> print(PlanDescription(1, 1, (), 1.0, 1.0, buckets_used=1, bucket_copies=1))
    1 worker, 1 bucket of keys
    largest worker   1.000 of its fair share (1.000 by key grouping)
    copies of a key  1.000 on average (1 copy of 1 bucket)
    hot              no bucket is split
    """

    workers: int
    """The number of workers."""
    buckets: int
    """The number of buckets."""
    hot: tuple[HotBucket, ...]
    """The split buckets, those with the largest share first."""
    by_key_grouping: float
    """The largest ratio of a worker's share to its fair share under key grouping.
    Key grouping sends all messages of bucket b to worker `b mod workers`."""
    by_plan: float
    """The largest ratio of a worker's share to its fair share under the plan."""
    buckets_used: int
    """The number of buckets with messages."""
    bucket_copies: int
    """The number of workers of each bucket with messages, added up."""

    @property
    def copies_per_key(self) -> float:
        """The mean number of workers that hold a key, if keys are spread evenly over the buckets.

        The number is exact if every key has a bucket of its own.
        """
        return self.bucket_copies / self.buckets_used

    def __str__(self) -> str:
        largest = (
            f"{self.by_plan:.3f} of its fair share ({self.by_key_grouping:.3f} by key grouping)"
        )
        copies = f"({_counted(self.bucket_copies, 'copy', 'copies')} of "
        copies += f"{_counted(self.buckets_used, 'bucket', 'buckets')})"
        workers = _counted(self.workers, "worker", "workers")
        lines = [
            f"{workers}, {_counted(self.buckets, 'bucket', 'buckets')} of keys",
            f"largest worker   {largest}",
            f"copies of a key  {self.copies_per_key:.3f} on average {copies}",
            f"hot              {_split_buckets(len(self.hot))}",
        ]
        lines += map(str, self.hot[:_LISTED])
        if len(self.hot) > _LISTED:
            lines.append(f"  and {len(self.hot) - _LISTED:,} more")
        return "\n".join(lines)


def describe(
    counts: NDArray[np.float64],
    copies: NDArray[np.int64],
    shares: NDArray[np.float64],
    fair: NDArray[np.float64],
) -> PlanDescription:
    """Describe a plan.

    Args:
        counts: The number of messages of each bucket.
        copies: The number of workers of each bucket.
        shares: The share of the stream that each worker gets under the plan.
        fair: The share of the stream that each worker should get.

    >>> ones = np.ones(2, np.int64)
    >>> describe(np.array([3.0, 1.0]), ones, np.array([0.75, 0.25]), np.array([0.5, 0.5])).by_plan
    1.5
    """
    parts = counts / counts.sum()
    split = np.flatnonzero(copies > 1)
    split = split[np.argsort(-parts[split], kind="stable")]
    grouped = np.bincount(np.arange(counts.size) % fair.size, parts, fair.size)
    return PlanDescription(
        workers=fair.size,
        buckets=counts.size,
        hot=tuple(HotBucket(int(b), float(parts[b]), int(copies[b])) for b in split),
        by_key_grouping=float((grouped / fair).max()),
        by_plan=float((shares / fair).max()),
        buckets_used=int(np.count_nonzero(counts)),
        bucket_copies=int(copies[counts > 0].sum()),
    )


def _split_buckets(split: int) -> str:
    if not split:
        return "no bucket is split"
    return "1 bucket is split" if split == 1 else f"{split:,} buckets are split"


def _counted(number: int, one: str, more: str) -> str:
    return f"{number:,} {one if number == 1 else more}"
