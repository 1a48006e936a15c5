"""Shuffle grouping: messages go to the bins in turn, regardless of their keys."""

from dataclasses import dataclass

import numpy as np

from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme


@dataclass(frozen=True)
class Shuffle(Scheme):
    """Round robin from bin `seed mod bins` on: perfect balance, but every key on every bin.

    >>> Shuffle().router(bins=3).route_many(np.zeros(5, np.uint64))
    array([0, 1, 2, 0, 1], dtype=int32)
    """

    name = "sg"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _ShuffleRouter(self, bins, seed)


class _ShuffleRouter(Router):
    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        start = (self.seed + self.messages) % self.bins
        one_cycle = np.roll(np.arange(self.bins, dtype=np.int32), -start)
        bins[:] = np.resize(one_cycle, hashes.size)
        cycles, rest = divmod(hashes.size, self.bins)
        loads += cycles
        loads[(start + np.arange(rest)) % self.bins] += 1
        return 0
