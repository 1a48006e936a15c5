"""D-Choices and W-Choices: more than two choices for the hottest keys only."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._compiled import compiled
from steelyard.hashing import Hashes
from steelyard.schemes.base import Bins, Loads, Router, Scheme
from steelyard.schemes.choices import choice
from steelyard.schemes.space_saving import SpaceSaving, observe
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class _HeadChoices(Scheme):
    head_share: float = 0.2

    def __post_init__(self) -> None:
        require_between("head_share", self.head_share, above=0, most=1)

    def router(self, bins: int, seed: int = 0) -> Router:
        return _HeadChoicesRouter(self, bins, seed)


@dataclass(frozen=True)
class DChoices(_HeadChoices):
    """Head keys go to the least loaded of d choices, other keys of two (Nasir et al., ICDE 2016).

    A key is in the head while its share, as SpaceSaving estimates it, is at least `head_share` of
    a bin: 1/(5n) by default. The scheme updates d every `refresh` messages (default: 100 n, at
    least 10,000), and more often before the first update. d is the smallest number that should
    keep the imbalance of the current head below `tolerance`. If d is n or more, head keys go to
    the least loaded of all bins, as in W-Choices.

    >>> router = DChoices().router(bins=50)
    >>> int(np.bincount(router.route_many(np.zeros(5000, np.uint64))).max())
    100
    """

    tolerance: float = 1e-4
    refresh: int | None = None

    name = "dchoices"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_between("tolerance", self.tolerance, above=0, most=1)
        if self.refresh is not None:
            require_whole("refresh", self.refresh, least=1)


@dataclass(frozen=True)
class WChoices(_HeadChoices):
    """Head keys go to the least loaded of all bins, other keys of two choices.

    A key is in the head while its share, as SpaceSaving estimates it, is at least `head_share` of
    a bin: 1/(5n) by default.

    >>> router = WChoices().router(bins=50)
    >>> int(np.bincount(router.route_many(np.zeros(5000, np.uint64))).max())
    100
    """

    name = "wchoices"


class _HeadChoicesRouter(Router):
    scheme: _HeadChoices
    remembers = ("_head_choices", *(f"_{name}" for name in SpaceSaving._fields))

    def __init__(self, scheme: _HeadChoices, bins: int, seed: int) -> None:
        super().__init__(scheme, bins, seed)
        self._threshold = scheme.head_share / self.bins
        # Twice the counters that the threshold requires: then the estimate of a key that was
        # never hot cannot reach the threshold.
        self._adopt(SpaceSaving.of_size(math.ceil(2 / self._threshold)))
        # The number of choices of a head key; `bins` means all bins.
        self._head_choices = self.bins
        self._refresh = 0
        if isinstance(scheme, DChoices):
            self._refresh = scheme.refresh or max(10_000, 100 * self.bins)
            self._head_choices = min(2, self.bins)
        # The lowest load, and the first bin that may have it.
        self._lowest = np.zeros(2, np.int64)

    def _adopt(self, summary: SpaceSaving) -> None:
        self._summary = summary
        for name in SpaceSaving._fields:
            setattr(self, f"_{name}", getattr(summary, name))

    def resumed(self) -> None:
        self._adopt(SpaceSaving(*(getattr(self, f"_{name}") for name in SpaceSaving._fields)))
        self._lowest[:] = self.loads.min(), 0

    def choose_many(self, hashes: Hashes, loads: Loads, bins: Bins) -> int:
        probes = done = 0
        while done < hashes.size:
            messages = self.messages + done
            due = self._next_refresh(messages)
            piece = slice(done, hashes.size if due is None else done + due - messages)
            probes += _least_loaded(
                hashes[piece],
                self.mask,
                self._threshold,
                messages,
                self._head_choices,
                loads,
                self._lowest,
                self._summary,
                bins[piece],
            )
            done += hashes[piece].size
            if self.messages + done == due:
                self._head_choices = self._enough_choices(due)
        return probes

    def _next_refresh(self, messages: int) -> int | None:
        """Return the number of messages at which d is next updated.

        These are powers of two up to `refresh`, then multiples of `refresh`.
        """
        if not self._refresh:
            return None
        if messages < self._refresh:
            return min(1 << messages.bit_length(), self._refresh)
        return (messages // self._refresh + 1) * self._refresh

    def _enough_choices(self, messages: int) -> int:
        assert isinstance(self.scheme, DChoices)
        counts = self._summary.counts
        head = counts[counts >= self._threshold * messages] / messages
        return int(enough_choices(head, self.bins, self.scheme.tolerance))


@compiled
def enough_choices(head: Any, bins: Any, tolerance: Any) -> Any:
    """Return the least d >= 2 that balances head keys with these shares in descending order.

    For every h the h hottest keys go to about b = n - n (1 - 1/n)^(h d) bins. These bins get all
    messages of the h keys, (b/n)^d of the rest of the head and (b/n)^2 of the tail. The sum must
    be at most b (1/n + tolerance). The result is `bins` if no smaller d is enough.
    """
    head_total = head.sum()
    tail = max(0.0, 1 - head_total)
    d: Any = 2
    if head.size:
        d = max(2, np.int64(np.ceil(head[0] * bins)))
    while d < bins:
        fits = True
        hottest = 0.0
        for h in range(head.size):
            hottest += head[h]
            owned = 1 - (1 - 1 / bins) ** ((h + 1) * d)
            load = hottest + (head_total - hottest) * owned**d + tail * owned**2
            if load > owned * (1 + bins * tolerance):
                fits = False
                break
        if fits:
            return d
        d += 1
    return bins


@compiled
def _least_loaded(
    keys: Any,
    mask: Any,
    threshold: Any,
    messages: Any,
    head_choices: Any,
    loads: Any,
    lowest: Any,
    summary: Any,
    out: Any,
) -> Any:
    bins = loads.size
    probes = 0
    for i in range(keys.size):
        messages += 1
        is_head = observe(summary, keys[i]) >= threshold * messages
        if is_head and head_choices >= bins:
            # Loads only grow: while any bin has the lowest load, the first such bin is at or
            # after the last one found.
            b = lowest[1]
            while b < bins and loads[b] > lowest[0]:
                b += 1
            if b == bins:
                b = np.argmin(loads)
                lowest[0] = loads[b]
            lowest[1] = b
            probes += 1
        else:
            key = keys[i] ^ mask
            b = choice(key, 1, bins)
            choices = head_choices if is_head else 2
            for salt in range(2, choices + 1):
                other = choice(key, salt, bins)
                if loads[other] < loads[b]:
                    b = other
            probes += choices
        loads[b] += 1
        out[i] = b
    return probes
