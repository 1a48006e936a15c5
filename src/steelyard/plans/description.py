"""Describe a routing plan in numbers and words.

The counts and shares of a plan enter, with what is known about its keys; a description leaves that
can be printed, and that a notebook shows with a picture of the loads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from steelyard.key_text import Name, columns_of, shown_key
from steelyard.showing import (
    OURS,
    PLAIN,
    Bars,
    Markup,
    card,
    counted,
    paragraph,
    picture,
    short_bar,
    table_as_html,
)

LISTED = 10
"""The number of hot buckets that a description lists; of the others it gives the number only."""

_KEY_WIDTH = 30
"""Most columns of a terminal for the name of a hot bucket."""

_NEARLY_ALL = 0.9
"""The named keys of a bucket with this share of its messages stand for the whole bucket."""


@dataclass(frozen=True)
class BucketKey:
    """A frequent key of a bucket."""

    name: Name
    share: float
    """Its share of the bucket's messages, possibly estimated from a sample."""


@dataclass(frozen=True, eq=False)
class KeyFacts:
    """What counts by bucket do not show about the keys; no routing depends on it.

    Args:
        by_partition: The messages of each partition of Spark's own `repartition`; None if they were
            not counted.
        names: The most frequent keys of some split buckets, in descending order of their shares.
    """

    by_partition: NDArray[np.float64] | None = None
    names: Mapping[int, tuple[BucketKey, ...]] = field(default_factory=dict)

    def named_by(self, shown: Callable[[Name], Name]) -> Self:
        """Return the same facts with other names of the keys."""
        renamed = {
            bucket: tuple(replace(key, name=shown(key.name)) for key in keys)
            for bucket, keys in self.names.items()
        }
        return replace(self, names=renamed)


@dataclass(frozen=True)
class HotBucket:
    """A bucket that goes to more than one worker.

    >>> str(HotBucket(7, 0.3, 2)), str(HotBucket(7, 0.3, 2, (BucketKey(("news",), 1.0),)))
    ('bucket 7', 'news')
    >>> str(HotBucket(7, 0.3, 2, (BucketKey(("news",), 0.5), BucketKey((None,), 0.2))))
    'news, (null) and others'
    """

    bucket: int
    share: float
    """The bucket's share of the stream."""
    workers: int
    """The number of workers that get messages of the bucket."""
    keys: tuple[BucketKey, ...] = ()
    """Its most frequent keys, if they are known."""

    def __str__(self) -> str:
        return self.shown(_KEY_WIDTH)

    def shown(self, width: int) -> str:
        """Return the keys, or else the number of the bucket, in at most this width."""
        if not self.keys:
            return f"bucket {self.bucket}"
        is_nearly_all = sum(key.share for key in self.keys) >= _NEARLY_ALL
        rest = "" if is_nearly_all else " and others"
        room = (width - len(rest) - 2 * (len(self.keys) - 1)) // len(self.keys)
        return ", ".join(shown_key(key.name, room) for key in self.keys) + rest


@dataclass(frozen=True, repr=False)
class PlanDescription:
    """The effect of a plan on the stream that it was made for; `str` gives it in a few lines.

    >>> hot = HotBucket(bucket=7, share=0.3, workers=2)
    >>> PlanDescription(64, (hot,), (1.0, 1.0), (1.9, 0.1), buckets_used=64, bucket_copies=65)
    2 workers, 64 buckets of keys
    largest worker   1.000 of its fair share (1.900 by key grouping)
    copies of a key  1.016 on average (65 copies of 64 buckets)
    hot              1 bucket is split
      bucket 7   30.00 % of the stream, on 2 workers

    >>> print(PlanDescription(1, (), (1.0,), (1.0,), buckets_used=1, bucket_copies=1))
    1 worker, 1 bucket of keys
    largest worker   1.000 of its fair share (1.000 by key grouping)
    copies of a key  1.000 on average (1 copy of 1 bucket)
    hot              no bucket is split
    """

    buckets: int
    """The number of buckets."""
    hot: tuple[HotBucket, ...]
    """The split buckets, those with the largest share first."""
    loads: tuple[float, ...]
    """The share of each worker under the plan, divided by its fair share."""
    loads_by_key: tuple[float, ...]
    """The share of each worker under key grouping, divided by its fair share.

    If the plan comes from `steelyard.plan`, these are the partitions of Spark's own
    `repartition(workers, key)`. Otherwise the messages of bucket b go to worker `b mod workers`.
    """
    buckets_used: int
    """The number of buckets with messages."""
    bucket_copies: int
    """The number of workers of each bucket with messages, added up."""

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self.loads)

    @property
    def by_plan(self) -> float:
        """The largest ratio of a worker's share to its fair share under the plan."""
        return max(self.loads)

    @property
    def by_key_grouping(self) -> float:
        """The largest ratio of a worker's share to its fair share under key grouping."""
        return max(self.loads_by_key)

    @property
    def copies_per_key(self) -> float:
        """The mean number of workers that hold a key, if keys are spread evenly over the buckets.

        The number is exact if every key has a bucket of its own.
        """
        return self.bucket_copies / self.buckets_used

    @property
    def heading(self) -> str:
        """The numbers of workers and of buckets."""
        workers = counted(self.workers, "worker")
        return f"{workers}, {counted(self.buckets, 'bucket')} of keys"

    @property
    def copies(self) -> str:
        """The copies of a key, as text."""
        copies = counted(self.bucket_copies, "copy", "copies")
        of = counted(self.buckets_used, "bucket")
        return f"{self.copies_per_key:.3f} on average ({copies} of {of})"

    @property
    def _largest(self) -> str:
        return f"{self.by_plan:.3f} of its fair share ({self.by_key_grouping:.3f} by key grouping)"

    @property
    def _split(self) -> str:
        split = len(self.hot)
        if not split:
            return "no bucket is split"
        return "1 bucket is split" if split == 1 else f"{split:,} buckets are split"

    @property
    def _unlisted(self) -> list[str]:
        more = len(self.hot) - LISTED
        return [f"and {more:,} more"] if more > 0 else []

    def __str__(self) -> str:
        names = [str(hot) for hot in self.hot[:LISTED]]
        width = max(map(columns_of, names), default=0)
        rows = (
            f"  {name}{' ' * (width - columns_of(name))}  {100 * hot.share:6.2f} % of the stream, "
            f"on {hot.workers:,} workers"
            for name, hot in zip(names, self.hot, strict=False)
        )
        lines = [
            self.heading,
            f"largest worker   {self._largest}",
            f"copies of a key  {self.copies}",
            f"hot              {self._split}",
            *rows,
            *(f"  {line}" for line in self._unlisted),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the description for a notebook."""
        by_key = Bars(f"by key grouping: at most {self.by_key_grouping:.3f}", self.loads_by_key,
                      PLAIN, is_outline=True)  # fmt: skip
        by_plan = Bars(f"by this plan: at most {self.by_plan:.3f}", self.loads, OURS)
        names = ("worker 0", f"worker {self.workers - 1:,}")
        largest = f"Largest worker: {self._largest}. Copies of a key: {self.copies}. "
        return card(
            f"Routing plan: {self.heading}",
            picture([by_key, by_plan], names, 1.0, "fair share"),
            paragraph(f"{largest}{self._split[0].upper()}{self._split[1:]}."),
            *([self._table_as_html()] if self.hot else []),
            *map(paragraph, self._unlisted),
        )

    def _table_as_html(self) -> Markup:
        """Return a table of the hot buckets; one without names needs no column for numbers."""
        most = self.hot[0].share or 1.0
        are_named = any(hot.keys for hot in self.hot)
        rows = [
            (
                hot.shown(2 * _KEY_WIDTH),
                f"{100 * hot.share:.2f} %",
                short_bar(hot.share / most),
                f"{hot.workers:,}",
                *([f"{hot.bucket}"] if are_named else []),
            )
            for hot in self.hot[:LISTED]
        ]
        head = ["hot key" if are_named else "hot bucket", "of the stream", "", "workers"]
        return table_as_html(head + ["bucket"] * are_named, rows, texts=(0, 2))


def describe(
    counts: NDArray[np.float64],
    copies: NDArray[np.int64],
    shares: NDArray[np.float64],
    fair: NDArray[np.float64],
    facts: KeyFacts | None = None,
) -> PlanDescription:
    """Describe a plan.

    Args:
        counts: The number of messages of each bucket.
        copies: The number of workers of each bucket.
        shares: The share of the stream that each worker gets under the plan.
        fair: The share of the stream that each worker should get.
        facts: What is known about the keys.

    >>> ones = np.ones(2, np.int64)
    >>> describe(np.array([3.0, 1.0]), ones, np.array([0.75, 0.25]), np.array([0.5, 0.5])).by_plan
    1.5
    """
    facts = facts or KeyFacts()
    parts = counts / counts.sum()
    split = np.flatnonzero(copies > 1)
    split = split[np.argsort(-parts[split], kind="stable")].tolist()
    grouped = np.bincount(np.arange(counts.size) % fair.size, parts, fair.size)
    if facts.by_partition is not None:
        grouped = facts.by_partition / facts.by_partition.sum()
    return PlanDescription(
        buckets=counts.size,
        hot=tuple(
            HotBucket(b, float(parts[b]), int(copies[b]), facts.names.get(b, ())) for b in split
        ),
        loads=tuple((shares / fair).tolist()),
        loads_by_key=tuple((grouped / fair).tolist()),
        buckets_used=int(np.count_nonzero(counts)),
        bucket_copies=int(copies[counts > 0].sum()),
    )
