"""A compact summary of how often keys occur.

Counts of keys enter; the number of keys with each count leaves, with the names of the hottest keys
and the messages of each bucket. m messages have at most `sqrt(2 m)` different counts, so some
thousand numbers describe billions of messages exactly.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from steelyard.doctor.adaptive import SHUFFLE_PARTITIONS
from steelyard.hashing import buckets_of, hash_keys, mix64
from steelyard.key_text import Name

Counts = NDArray[np.int64]

BUCKETS = 8192
"""Default number of buckets of a plan."""

TOP = 20
"""Number of hottest keys whose names are kept."""

FACTORS = (2, 4, 8)
"""More partitions by key, as multiples of the workers."""


def counted_partitions(workers: int) -> tuple[int, ...]:
    """Return the numbers of partitions for which the messages of each partition are counted.

    >>> counted_partitions(24), counted_partitions(25)
    ((192, 200), (200,))
    """
    return tuple(dict.fromkeys((FACTORS[-1] * workers, SHUFFLE_PARTITIONS)))


@dataclass(frozen=True)
class TopKey:
    """One of the hottest keys."""

    name: Name
    messages: int
    hash: int
    """Its `xxhash64`, signed or not."""

    @property
    def bucket(self) -> int:
        """The bucket of the key in a plan."""
        return self.hash % BUCKETS


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """The distribution of a data set's keys, without the keys themselves.

    >>> counts = KeyCounts.of({"a": 5, "b": 1, None: 1}, workers=2)
    >>> counts.messages, counts.keys, counts.hottest
    (7, 3, 5)
    >>> counts.top[0].name
    ('a',)
    """

    values: Counts
    """The distinct numbers of messages that keys have, in descending order."""
    keys_with: Counts
    """The number of keys with each of these numbers of messages."""
    top: tuple[TopKey, ...]
    """The hottest keys, in descending order."""
    by_bucket: Counts
    """Messages in each bucket of a plan."""
    keys_by_bucket: Counts
    """Different keys in each bucket."""
    by_partition: Mapping[int, Counts]
    """Messages in each partition of `repartition(n, key)`, for each n of `counted_partitions`."""

    def __post_init__(self) -> None:
        if not self.values.size:
            raise ValueError("there is nothing to examine: the data has no rows")

    @classmethod
    def of(cls, counts: Mapping[str | None, int], workers: int) -> "KeyCounts":
        """Summarize the counts of all keys, which have to fit into memory."""
        names = sorted(counts, key=lambda name: (-counts[name], str(name)))
        numbers = np.array([counts[name] for name in names], np.int64)
        hashes = hash_keys(pa.array(names, pa.string()))
        values, keys_with = np.unique(numbers, return_counts=True)
        buckets = buckets_of(hashes, BUCKETS)
        mixed = mix64(hashes)  # as independent of the buckets as Spark's own hash
        parts = {
            size: (mixed % np.uint64(size)).astype(np.int32) for size in counted_partitions(workers)
        }
        top = [
            TopKey((name,), int(number), int(hashed))
            for name, number, hashed in zip(names[:TOP], numbers, hashes, strict=False)
        ]
        return cls(
            values=values[::-1],
            keys_with=keys_with[::-1],
            top=tuple(top),
            by_bucket=_sums(buckets, numbers, BUCKETS),
            keys_by_bucket=np.bincount(buckets, minlength=BUCKETS),
            by_partition={size: _sums(part, numbers, size) for size, part in parts.items()},
        )

    def named_by(self, shown: Callable[[Name], Name]) -> Self:
        """Return the same counts with other names of the hottest keys."""
        return replace(self, top=tuple(replace(top, name=shown(top.name)) for top in self.top))

    @cached_property
    def messages(self) -> int:
        """The number of messages."""
        return int((self.values * self.keys_with).sum())

    @cached_property
    def keys(self) -> int:
        """The number of different keys."""
        return int(self.keys_with.sum())

    @property
    def hottest(self) -> int:
        """Messages of the hottest key."""
        return int(self.values[0])

    def of_first(self, keys: int) -> int:
        """Count the messages of the hottest keys.

        >>> KeyCounts.of({"a": 5, "b": 2, "c": 2}, workers=1).of_first(2)
        7
        """
        before = self.keys_with.cumsum() - self.keys_with
        taken = np.clip(keys - before, 0, self.keys_with)
        return int((taken * self.values).sum())

    def partitions(self, number: int) -> Counts:
        """Return the messages in each partition of `repartition(number, key)`.

        The partition of a key is its hash modulo the number, so a divisor of a counted number is
        known, too.
        """
        for size, messages in self.by_partition.items():
            if size % number == 0:
                return np.asarray(messages.reshape(-1, number).sum(axis=0), np.int64)
        counted = ", ".join(map(str, self.by_partition))
        raise ValueError(f"number must divide one of {counted}, got {number}")

    def mean(self, by_value: ArrayLike) -> float:
        """Return the mean over all keys of a quantity that depends on a key's messages.

        `by_value` holds the quantity for each number of messages in `values`.
        """
        return float((np.asarray(by_value) * self.keys_with).sum() / self.keys)

    def curve(self, points: int = 200) -> tuple[tuple[int, int], ...]:
        """Return some ranks, from 1 for the hottest key, and the messages of their keys.

        The ranks are evenly spaced on a logarithmic scale.

        >>> KeyCounts.of({"a": 5, "b": 2, "c": 2}, workers=1).curve()
        ((1, 5), (2, 2), (3, 2))
        """
        ranks = np.unique(np.geomspace(1, self.keys, points).astype(np.int64))
        found = self.values[self.keys_with.cumsum().searchsorted(ranks)]
        return tuple(zip(ranks.tolist(), found.tolist(), strict=True))

    def stream(self, most: int, seed: int = 0) -> NDArray[np.int64]:
        """Return the keys of messages in random order, numbered from 0 for the hottest key.

        The result has all messages, or `most` messages drawn from them if there are more.

        >>> np.bincount(KeyCounts.of({"a": 5, "b": 2, "c": 2}, workers=1).stream(most=100))
        array([5, 2, 2])
        """
        rng = np.random.default_rng(seed)
        if self.messages <= most:
            drawn = rng.permutation(self.messages)
        else:
            drawn = rng.integers(0, self.messages, most)
        sizes = self.values * self.keys_with
        ends = sizes.cumsum()
        group = ends.searchsorted(drawn, "right")
        first = self.keys_with.cumsum() - self.keys_with
        numbers: NDArray[np.int64] = first[group]
        numbers += (drawn - (ends - sizes)[group]) // self.values[group]
        return numbers


def _sums(places: NDArray[np.int32], numbers: Counts, size: int) -> Counts:
    return np.bincount(places, numbers, size).astype(np.int64)
