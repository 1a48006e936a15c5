"""Shuffle grouping: messages go round the bins, whatever their key."""

from dataclasses import dataclass

import numpy as np

from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Router, Scheme


@dataclass(frozen=True)
class Shuffle(Scheme):
    """Round robin, from a bin that the seed decides: perfect balance, every key everywhere.

    >>> Shuffle().router(bins=3).route_many(np.zeros(5, np.uint64))
    array([0, 1, 2, 0, 1], dtype=int32)
    """

    name = "sg"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _ShuffleRouter(self, bins, seed)


class _ShuffleRouter(Router):
    def _route(self, hashes: Hashes, bins: Bins) -> int:
        start = (self.seed + self._messages) % self.bins
        one_round = np.roll(np.arange(self.bins, dtype=np.int32), -start)
        bins[:] = np.resize(one_round, hashes.size)
        rounds, rest = divmod(hashes.size, self.bins)
        self._loads += rounds
        self._loads[(start + np.arange(rest)) % self.bins] += 1
        return 0
