"""Power of two choices: the less loaded of two random bins, whatever the key."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._compiled import compiled
from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Router, Scheme
from steelyard.schemes.choices import choice, mix64


@dataclass(frozen=True)
class TwoChoices(Scheme):
    """Two bins drawn anew for every message: near-perfect balance, every key everywhere.

    >>> loads = TwoChoices().router(bins=4).route_many(np.zeros(400, np.uint64))
    >>> bool(np.bincount(loads).max() <= 102)
    True
    """

    name = "potc"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _TwoChoicesRouter(self, bins, seed)


class _TwoChoicesRouter(Router):
    def _route(self, hashes: Hashes, bins: Bins) -> int:
        _less_loaded_of_two(self._messages, self._mask, self._loads, bins)
        return 2 * hashes.size


@compiled
def _less_loaded_of_two(messages: Any, mask: Any, loads: Any, out: Any) -> None:
    for i in range(out.size):
        draw = mix64(np.uint64(messages + i)) ^ mask  # the message's number is its randomness
        b = choice(draw, 1, loads.size)
        other = choice(draw, 2, loads.size)
        if loads[other] < loads[b]:
            b = other
        loads[b] += 1
        out[i] = b
