"""Power of two choices: the less loaded of two random bins, regardless of the key."""

from dataclasses import dataclass

import numpy as np

from steelyard.hashing import Hashes, mix64
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import less_loaded_of_two


@dataclass(frozen=True)
class TwoChoices(Scheme):
    """Two new random bins for every message: near-perfect balance, but every key on every bin.

    >>> loads = TwoChoices().router(bins=4).route_many(np.zeros(400, np.uint64))
    >>> bool(np.bincount(loads).max() <= 102)
    True
    """

    name = "potc"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _TwoChoicesRouter(self, bins, seed)


class _TwoChoicesRouter(Router):
    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        numbers = np.arange(self.messages, self.messages + hashes.size, dtype=np.uint64)
        less_loaded_of_two(mix64(numbers), self.mask, loads, bins)
        return 2 * hashes.size
