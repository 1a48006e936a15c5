"""Draw the ranks of keys from a distribution.

Message numbers and a seed enter; ranks leave, 0 for the hottest key. The rank of message i
depends only on i and the seed, so any part of a stream can be generated anywhere, in any order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._compiled import compiled
from steelyard.hashing import mix64, seed_mask
from steelyard.validation import require_whole

Floats = NDArray[np.float64]

TABLE = 2**20
"""The number of ranks with an entry in a table; later ranks are computed from a formula."""

_GUIDES = 2**20


@dataclass(frozen=True)
class PowerLaw:
    """Weights `scale * (k + shift) ** -exponent` for ranks k = 1, 2, ...

    >>> PowerLaw(exponent=1.0)(np.array([1, 2, 4])).tolist()
    [1.0, 0.5, 0.25]
    """

    exponent: float
    shift: float = 0.0
    scale: float = 1.0

    def __call__(self, ranks: NDArray[np.integer]) -> Floats:
        """Return the weights of these ranks."""
        weights: Floats = self.scale * (ranks.astype(np.float64) + self.shift) ** -self.exponent
        return weights

    def sum(self, first: int, last: int) -> float:
        """Return the weight of the ranks `first` to `last`, exact to 1e-12 for large `first`."""
        low, high = first - 0.5 + self.shift, last + 0.5 + self.shift
        if self.exponent == 1:
            return float(self.scale * np.log(high / low))
        power = 1 - self.exponent
        return float(self.scale * (high**power - low**power) / power)


@dataclass(frozen=True, eq=False)
class RankShape:
    """The distribution of a stream's messages over the ranks of its keys.

    `head` gives the weights of the first 2^20 ranks; `tail` gives those of the others.

    >>> shape = RankShape(3, PowerLaw(1.0))
    >>> round(shape.share(1), 4)
    0.5455
    >>> shape.draw(0, 8, seed=1)
    array([0, 0, 0, 1, 1, 0, 2, 1], dtype=uint32)
    """

    ranks: int
    head: Callable[[NDArray[np.int64]], Floats]
    tail: PowerLaw = field(default_factory=lambda: PowerLaw(1.0))

    def __post_init__(self) -> None:
        require_whole("ranks", self.ranks, least=1, most=2**32)

    @cached_property
    def _reach(self) -> Floats:
        """The cumulative weight up to each rank of the table."""
        return self.head(np.arange(1, min(self.ranks, TABLE) + 1)).cumsum()

    @cached_property
    def total(self) -> float:
        """The weight of all ranks."""
        rest = self.tail.sum(TABLE + 1, self.ranks) if self.ranks > TABLE else 0.0
        return float(self._reach[-1]) + rest

    @cached_property
    def _guide(self) -> NDArray[np.int32]:
        """The first possible rank of a draw, by the leading bits of the draw."""
        marks = np.arange(_GUIDES) / _GUIDES * self.total
        found = self._reach.searchsorted(marks, "right")
        return np.minimum(found, self._reach.size - 1).astype(np.int32)

    def share(self, first: int) -> float:
        """Return the share of the stream of the `first` hottest keys."""
        require_whole("first", first, least=1, most=min(self.ranks, TABLE))
        return float(self._reach[first - 1] / self.total)

    def draw(self, first: int, count: int, seed: int = 0) -> NDArray[np.uint32]:
        """Return the ranks of messages `first` to `first + count - 1`."""
        numbers = np.arange(first, first + count, dtype=np.uint64)
        bits = mix64(mix64(numbers ^ seed_mask(seed))) >> np.uint64(11)
        ranks = np.empty(count, np.uint32)
        tail = (self.tail.exponent, self.tail.shift, self.tail.scale)
        _draw(bits, self._reach, self.total, self._guide, self.ranks, tail, ranks)
        return ranks


@compiled
def _draw(
    bits: Any, reach: Any, total: Any, guide: Any, last_rank: Any, tail: Any, ranks: Any
) -> None:
    """Compute ranks from random numbers of 53 bits."""
    exponent, shift, scale = tail
    power = 1 - exponent
    begin = reach.size + 0.5 + shift
    for i in range(ranks.size):
        weight = np.float64(bits[i]) * 2.0**-53 * total
        if weight >= reach[-1]:
            more = (weight - reach[-1]) / scale
            if power == 0:
                where = begin * np.exp(more)
            else:
                where = (begin**power + more * power) ** (1 / power)
            rank = np.int64(where - shift + 0.5)  # the rank whose unit interval contains `where`
            ranks[i] = min(max(rank, reach.size + 1), last_rank) - 1
        else:
            rank = np.int64(guide[bits[i] >> np.uint64(33)])
            while reach[rank] <= weight:
                rank += 1
            ranks[i] = rank
