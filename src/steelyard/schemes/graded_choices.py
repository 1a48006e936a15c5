"""Graded power of random choices: hot keys overflow first, so light keys can stay."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._compiled import compiled
from steelyard.hashing import Hashes, coprime_steps
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import HALF, LOW_HALF, mix64, scaled
from steelyard.validation import require_between, require_whole

_POINTERS = 1024


@dataclass(frozen=True)
class GradedChoices(Scheme):
    """PoRC with a lower limit for hotter keys: the same bound on loads, but fewer key copies.

    In Algorithm 1 a light key moves whenever hot keys have filled its bin. Here the limit depends
    on the key. It falls in `grades` steps from `(1 + epsilon)` times the mean load, for a light
    key, to the mean load, for the hottest keys. Each step is a doubling of the key's share beyond
    `heavy_share` of a bin. A majority vote in each of `16 n` hash table entries finds hot keys.

    After m messages over n bins `load <= (1 + epsilon) m / n + slack + 1`.

    Args:
        epsilon: Sets the limit for light keys.
        grades: The number of different limits.
        heavy_share: The share of a bin from which a key has a lower limit.
        half_life: All loads are halved after each `half_life` messages; None never halves them.
            Halving bounds the *recent* imbalance when hot keys change. 10 n / epsilon follows
            them closely; 4 n / epsilon^2 keeps the memory low.
        slack: A number of messages added to the limit. A few messages let light keys stay while
            loads are small.

    >>> router = GradedChoices(epsilon=0.5).router(bins=4)
    >>> int(np.bincount(router.route_many(np.zeros(100, np.uint64))).max())
    25
    """

    epsilon: float = 0.01
    grades: int = 7
    heavy_share: float = 0.05
    half_life: int | None = None
    slack: float = 0.0

    name = "porc-graded"

    def __post_init__(self) -> None:
        require_between("epsilon", self.epsilon, above=0, most=10)
        require_whole("grades", self.grades, least=2, most=64)
        require_between("heavy_share", self.heavy_share, above=0, most=1)
        if self.half_life is not None:
            require_whole("half_life", self.half_life, least=1)
        require_between("slack", self.slack, least=0, most=2**53)

    def router(self, bins: int, seed: int = 0) -> Router:
        return _GradedChoicesRouter(self, bins, seed)


class _GradedChoicesRouter(Router):
    scheme: GradedChoices
    remembers = ("_forgotten", "_until_halving", "_hot_keys", "_hot_votes")

    def __init__(self, scheme: GradedChoices, bins: int, seed: int) -> None:
        super().__init__(scheme, bins, seed)
        grade = np.arange(scheme.grades) / (scheme.grades - 1)
        self._growth = 1 + scheme.epsilon * (1 - grade)
        self._allowance = scheme.slack * (1 - grade)
        self._steps = coprime_steps(self.bins)
        slots = 2 ** (16 * self.bins - 1).bit_length()
        self._hot_keys = np.zeros(slots, np.uint64)
        self._hot_votes = np.zeros(slots, np.int64)
        # The messages that halving removed from the loads, so that `loads` still counts all.
        self._forgotten = np.zeros(self.bins, np.int64)
        self._until_halving = scheme.half_life or 0
        # Rows of (key, limit, hops): the first `hops` choices of `key` are full at `limit`.
        # Rows may be lost or overwritten at any time: they save probes but change no choice.
        self._pointers = np.zeros((_POINTERS, 3), np.uint64)

    @property
    def loads(self) -> Loads:
        """The number of messages that each bin got from this router."""
        return super().loads + self._forgotten

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        if self.scheme.half_life is None:
            return self._route_unhalved(hashes, loads, bins)
        probes = done = 0
        while done < hashes.size:
            piece = slice(done, done + self._until_halving)
            probes += self._route_unhalved(hashes[piece], loads, bins[piece])
            routed = hashes[piece].size
            done += routed
            self._until_halving -= routed
            if self._until_halving == 0:
                self._halve(loads)
        return probes

    def _route_unhalved(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        probes = _first_with_room(
            hashes,
            self.mask,
            self._growth,
            self._allowance,
            self.scheme.heavy_share,
            loads,
            self._steps,
            self._hot_keys,
            self._hot_votes,
            self._pointers,
            bins,
        )
        return int(probes)

    def _halve(self, loads: Loads) -> None:
        assert self.scheme.half_life is not None
        self._until_halving = self.scheme.half_life
        halved = loads >> 1
        self._forgotten += loads - halved
        loads[:] = halved
        self._hot_votes >>= 1
        self._pointers[:] = 0  # full bins have room again


@compiled
def _first_with_room(
    keys: Any,
    mask: Any,
    growth: Any,
    allowance: Any,
    heavy_share: Any,
    loads: Any,
    steps: Any,
    hot_keys: Any,
    hot_votes: Any,
    pointers: Any,
    out: Any,
) -> Any:
    bins = loads.size
    messages = loads.sum()
    last_grade = growth.size - 1
    slot_mask = np.uint64(hot_keys.size - 1)
    pointer_mask = np.uint64(pointers.shape[0] - 1)
    probes = 0
    for i in range(keys.size):
        messages += 1  # counts this message, so a bin with room always exists
        key = keys[i]
        mixed = mix64(key ^ mask)

        slot = np.int64((mixed >> np.uint64(20)) & slot_mask)
        votes = 0
        if hot_keys[slot] == key and hot_votes[slot] > 0:
            hot_votes[slot] += 1
            votes = hot_votes[slot]
        else:
            hot_votes[slot] -= 1
            if hot_votes[slot] <= 0:
                hot_keys[slot] = key
                hot_votes[slot] = 1

        grade: Any = 0
        if votes >= 2:
            heaviness = heavy_share * messages / bins
            while grade < last_grade and votes > heaviness:
                grade += 1
                heaviness *= 2
        limit = np.int64(np.ceil(messages * growth[grade] / bins + allowance[grade]))

        b = scaled(mixed >> HALF, bins)
        probes += 1
        if loads[b] >= limit:
            step = np.int64(steps[scaled(mixed & LOW_HALF, steps.size)])
            pointer = pointers[np.int64(mixed & pointer_mask)]
            hops: Any = np.int64(1)
            # Loads only grow: a bin that is full at a limit is full at every lower limit.
            if pointer[0] == key and pointer[1] >= np.uint64(limit):
                hops = np.int64(pointer[2])
            b = np.int64((np.uint64(b) + np.uint64(hops) * np.uint64(step)) % np.uint64(bins))
            probes += 1
            while loads[b] >= limit:
                b += step
                if b >= bins:
                    b -= bins
                hops += 1
                probes += 1
            pointer[0] = key
            pointer[1] = np.uint64(limit)
            pointer[2] = np.uint64(hops)
        loads[b] += 1
        out[i] = b
    return probes
