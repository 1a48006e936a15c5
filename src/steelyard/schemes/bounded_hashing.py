"""Consistent hashing with bounded loads: the first bin with room, clockwise on a ring."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._compiled import compiled
from steelyard.hashing import Hashes, mix64
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import mix64 as compiled_mix64
from steelyard.validation import require_between


@dataclass(frozen=True)
class BoundedHashing(Scheme):
    """Each bin has one point on a ring; a message goes to the next bin clockwise with room.

    A bin has room while its load is below `(1 + epsilon)` times the mean load, as in PoRC
    (Mirrokni et al., 2016). After m messages over n bins `load <= (1 + epsilon) m / n + 1`, at
    every m. All messages that overflow a bin go to its neighbor, so keys have more copies than
    with PoRC.

    >>> router = BoundedHashing(epsilon=0.5).router(bins=4)
    >>> int(np.bincount(router.route_many(np.zeros(100, np.uint64))).max())
    38
    """

    epsilon: float = 0.01

    name = "ch"

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)

    def router(self, bins: int, seed: int = 0) -> Router:
        return _BoundedHashingRouter(self, bins, seed)


class _BoundedHashingRouter(Router):
    scheme: BoundedHashing

    def __init__(self, scheme: BoundedHashing, bins: int, seed: int) -> None:
        super().__init__(scheme, bins, seed)
        points = mix64(~np.arange(self.bins, dtype=np.uint64) ^ self.mask)
        self._order: NDArray[np.int64] = np.argsort(points, kind="stable")
        self._points = points[self._order]
        # The position on the ring where the search starts, by the leading bits of a key's point.
        self._leading_bits = (4 * self.bins - 1).bit_length()
        starts = np.arange(2**self._leading_bits, dtype=np.uint64)
        starts <<= np.uint64(64 - self._leading_bits)
        self._guide = np.searchsorted(self._points, starts).astype(np.int64)
        # The next position to check from each position; leads to a bin with room in a few hops.
        self._onward = np.arange(self.bins, dtype=np.int64)

    def resumed(self) -> None:
        full_at = np.ceil((1 + self.scheme.epsilon) * self.messages / self.bins)
        full = np.flatnonzero(self.loads[self._order] >= full_at)
        self._onward[full] = (full + 1) % self.bins

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        probes = _clockwise(
            hashes,
            self.mask,
            self.scheme.epsilon,
            self.messages,
            loads,
            self._order,
            self._points,
            self._guide,
            64 - self._leading_bits,
            self._onward,
            bins,
        )
        return int(probes)


@compiled
def _clockwise(
    keys: Any,
    mask: Any,
    epsilon: Any,
    messages: Any,
    loads: Any,
    order: Any,
    points: Any,
    guide: Any,
    shift: Any,
    onward: Any,
    out: Any,
) -> Any:
    bins = loads.size
    probes = 0
    full_at = np.int64(np.ceil((1 + epsilon) * messages / bins))
    for i in range(keys.size):
        messages += 1  # counts this message, so a bin with room always exists
        new_full_at = np.int64(np.ceil((1 + epsilon) * messages / bins))
        if new_full_at > full_at:  # no load exceeds the old limit, so every bin has room again
            full_at = new_full_at
            for place in range(bins):
                onward[place] = place
        point = compiled_mix64(keys[i] ^ mask)
        place = guide[point >> np.uint64(shift)]
        while place < bins and points[place] < point:
            place += 1
        if place == bins:
            place = 0
        probes += 1
        while onward[place] != place:  # each hop halves the path for later messages
            onward[place] = onward[onward[place]]
            place = onward[place]
            probes += 1
        b = order[place]
        loads[b] += 1
        if loads[b] >= full_at:
            onward[place] = place + 1 if place + 1 < bins else 0
        out[i] = b
    return probes
