"""Key grouping: all messages of a key go to one bin."""

from dataclasses import dataclass
from typing import Any

from steelyard._compiled import compiled
from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import choice


@dataclass(frozen=True)
class KeyGrouping(Scheme):
    """Every message goes to its key's first choice: the least memory, but no balance.

    With n bins and a key of share p the normalized imbalance is at least n p - 1.

    >>> router = KeyGrouping().router(bins=4)
    >>> router.route(7) == router.route(7)
    True
    """

    name = "kg"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _KeyRouter(self, bins, seed)


class _KeyRouter(Router):
    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        _first_choices(hashes, self.mask, loads, bins)
        return hashes.size


@compiled
def _first_choices(keys: Any, mask: Any, loads: Any, out: Any) -> None:
    for i in range(keys.size):
        b = choice(keys[i] ^ mask, 1, loads.size)
        loads[b] += 1
        out[i] = b
