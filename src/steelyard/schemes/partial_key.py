"""Partial key grouping: the less loaded of a key's two choices."""

from dataclasses import dataclass

from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import less_loaded_of_two


@dataclass(frozen=True)
class PartialKey(Scheme):
    """Each key is split over two bins (Nasir et al., ICDE 2015).

    A key has at most two copies. The balance is near-perfect while no key has more than 1/(5n) of
    the stream. With a key of share p the normalized imbalance is at least n p / 2 - 1.

    >>> len(set(PartialKey().router(bins=100).route(7) for _ in range(50))) <= 2
    True
    """

    name = "pkg"

    def router(self, bins: int, seed: int = 0) -> Router:
        return _PartialKeyRouter(self, bins, seed)


class _PartialKeyRouter(Router):
    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        less_loaded_of_two(hashes, self.mask, loads, bins)
        return 2 * hashes.size
