"""Manual salting: each message gets one of a few salts, and its key is hashed with the salt."""

from dataclasses import dataclass
from typing import Any

from steelyard._compiled import compiled
from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import choice
from steelyard.validation import require_whole


@dataclass(frozen=True)
class Salting(Scheme):
    """Salting as users write it by hand: every key, hot or not, is split over `salts` bins.

    Messages get the salts in turn. With n bins and a key of share p the normalized imbalance is
    at least n p / salts - 1. Almost every key has `salts` copies.

    >>> router = Salting(salts=3).router(bins=100)
    >>> bins = [router.route(7) for _ in range(6)]
    >>> bins[:3] == bins[3:], len(set(bins))
    (True, 3)
    """

    name = "salting"

    salts: int = 10

    def __post_init__(self) -> None:
        require_whole("salts", self.salts, least=1, most=2**20)

    def router(self, bins: int, seed: int = 0) -> Router:
        return _SaltingRouter(self, bins, seed)


class _SaltingRouter(Router):
    scheme: Salting

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        _salted_choices(hashes, self.mask, self.messages, self.scheme.salts, loads, bins)
        return hashes.size


@compiled
def _salted_choices(keys: Any, mask: Any, messages: Any, salts: Any, loads: Any, out: Any) -> None:
    for i in range(keys.size):
        b = choice(keys[i] ^ mask, 1 + (messages + i) % salts, loads.size)
        loads[b] += 1
        out[i] = b
