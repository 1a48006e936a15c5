"""How often keys occur, in little room.

Counts of keys enter; how many keys have how many messages leaves, the hottest keys by name, and how
much each bucket of keys has. Of m messages there are at most `sqrt(2 m)` different counts, so that
billions of them are described exactly by some thousand numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from steelyard.hashing import buckets_of, hash_keys
from steelyard.schemes import KeyGrouping

Counts = NDArray[np.int64]

BUCKETS = 8192
"""Buckets of a plan, by default."""

TOP = 20
"""Hottest keys whose names are kept."""

Name = tuple[str | None, ...]
"""The columns of a key as text; None for a null."""


@dataclass(frozen=True)
class TopKey:
    """One of the hottest keys."""

    name: Name
    messages: int
    hash: int
    """Its `xxhash64`, signed or not."""

    @property
    def bucket(self) -> int:
        """The bucket of a plan that it falls into."""
        return self.hash % BUCKETS


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """What a data set's keys are like, without the keys.

    >>> counts = KeyCounts.of({"a": 5, "b": 1, None: 1}, workers=2)
    >>> counts.messages, counts.keys, counts.hottest
    (7, 3, 5)
    >>> counts.top[0].name
    ('a',)
    """

    values: Counts
    """All different numbers of messages that keys have, falling."""
    keys_with: Counts
    """How many keys have each of these."""
    top: tuple[TopKey, ...]
    """The hottest keys, falling."""
    by_bucket: Counts
    """Messages in each bucket of a plan."""
    keys_by_bucket: Counts
    """Different keys in each of them."""
    by_partition: Counts
    """Messages in each part if every key goes where its hash says."""

    def __post_init__(self) -> None:
        if not self.values.size:
            raise ValueError("there is nothing to examine: the data has no rows")

    @classmethod
    def of(cls, counts: Mapping[str | None, int], workers: int) -> "KeyCounts":
        """From the counts of all keys, where these fit into memory."""
        names = sorted(counts, key=lambda name: (-counts[name], str(name)))
        numbers = np.array([counts[name] for name in names], np.int64)
        hashes = hash_keys(pa.array(names, pa.string()))
        values, keys_with = np.unique(numbers, return_counts=True)
        buckets = buckets_of(hashes, BUCKETS)
        parts = KeyGrouping().router(workers).route_many(hashes)
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
            by_partition=_sums(parts, numbers, workers),
        )

    @cached_property
    def messages(self) -> int:
        """All of them."""
        return int((self.values * self.keys_with).sum())

    @cached_property
    def keys(self) -> int:
        """Different ones."""
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

    def mean(self, by_value: ArrayLike) -> float:
        """The mean over all keys of something that depends on a key's number of messages."""
        return float((np.asarray(by_value) * self.keys_with).sum() / self.keys)

    def curve(self, points: int = 200) -> tuple[tuple[int, int], ...]:
        """Some ranks, 1 the hottest, with the messages of their keys: the first ones, then fewer.

        >>> KeyCounts.of({"a": 5, "b": 2, "c": 2}, workers=1).curve()
        ((1, 5), (2, 2), (3, 2))
        """
        ranks = np.unique(np.geomspace(1, self.keys, points).astype(np.int64))
        found = self.values[self.keys_with.cumsum().searchsorted(ranks)]
        return tuple(zip(ranks.tolist(), found.tolist(), strict=True))

    def stream(self, most: int, seed: int = 0) -> NDArray[np.int64]:
        """Keys, numbered from 0 for the hottest, of messages in random order.

        All messages, or `most` drawn from them if there are more.

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
