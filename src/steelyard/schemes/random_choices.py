"""Power of random choices (PoRC): the first of a key's choices that has room."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._compiled import compiled
from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import choice
from steelyard.validation import require_between

# Both numbers are chosen by measurement (`make bench`). Most keys find room within the plain
# probes and need no pointer.
_PLAIN_PROBES = 2
_POINTERS = 1024


@dataclass(frozen=True)
class RandomChoices(Scheme):
    """The paper's Algorithm 1: the same choices, made faster.

    A bin has room while its load is below `(1 + epsilon)` times the mean load. Light keys stay on
    their first choice; a key that is too hot for one bin overflows to its second, its third, ...
    After m messages over n bins `load <= (1 + epsilon) m / n + 1`, at every m. A smaller
    `epsilon` gives better balance and more key copies.

    >>> router = RandomChoices(epsilon=0.5).router(bins=4)
    >>> int(np.bincount(router.route_many(np.zeros(100, np.uint64))).max())
    38
    """

    epsilon: float = 0.01

    name = "porc"

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)

    def router(self, bins: int, seed: int = 0) -> Router:
        return _RandomChoicesRouter(self, bins, seed)


class _RandomChoicesRouter(Router):
    scheme: RandomChoices

    def __init__(self, scheme: RandomChoices, bins: int, seed: int) -> None:
        super().__init__(scheme, bins, seed)
        # Rows of (key, limit, salt): the choices of `key` before `salt` are full at `limit`.
        # Rows may be lost or overwritten at any time: they save probes but change no choice.
        self._pointers = np.zeros((_POINTERS, 3), np.uint64)

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        probes = _first_with_room(
            hashes,
            self.mask,
            self.scheme.epsilon,
            self.messages,
            loads,
            self._pointers,
            bins,
        )
        return int(probes)


@compiled
def _first_with_room(
    keys: Any, mask: Any, epsilon: Any, messages: Any, loads: Any, pointers: Any, out: Any
) -> Any:
    bins = loads.size
    probes = 0
    for i in range(keys.size):
        messages += 1  # counts this message, so a bin with room always exists
        room = (1 + epsilon) * messages / bins
        key = keys[i] ^ mask
        salt: Any = 1
        b = choice(key, salt, bins)
        while salt < _PLAIN_PROBES and loads[b] >= room:
            salt += 1
            b = choice(key, salt, bins)
        if loads[b] >= room:
            # Loads are whole numbers, so a bin is full if `load >= limit`. Full bins stay full
            # until the limit grows, so a choice that was full for this key is skipped.
            limit = np.uint64(np.ceil(room))
            pointer = pointers[np.int64(key & np.uint64(pointers.shape[0] - 1))]
            if pointer[0] == key and pointer[1] == limit:
                salt = max(salt, np.int64(pointer[2]) - 1)
            while loads[b] >= room:
                salt += 1
                b = choice(key, salt, bins)
                probes += 1
            pointer[0] = key
            pointer[1] = limit
            pointer[2] = np.uint64(salt)
        probes += min(salt, _PLAIN_PROBES)
        loads[b] += 1
        out[i] = b
    return probes
