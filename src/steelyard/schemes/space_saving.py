"""Find hot keys: the SpaceSaving summary (Metwally et al., 2005), compiled.

Keys enter one by one; estimated counts leave. An estimate is never below the true count, and
above it by at most m / size. Counters are in descending order of their counts.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._compiled import compiled
from steelyard.schemes.choices import mix64


class SpaceSaving(NamedTuple):
    """The counters of SpaceSaving, and an index from keys to them."""

    keys: NDArray[np.uint64]
    """The key of the counter at each position."""
    counts: NDArray[np.int64]
    """The count of the counter at each position."""
    heads: NDArray[np.int64]
    """The number of the first counter of each entry of the index, or -1."""
    nexts: NDArray[np.int64]
    """For each counter's number the next counter of its index entry, or -1."""
    places: NDArray[np.int64]
    """The position of each counter, by its number."""
    numbers: NDArray[np.int64]
    """The number of the counter at each position."""

    @classmethod
    def of_size(cls, size: int) -> Self:
        """Create a summary with `size` counters, all at zero."""
        slots = 2 ** int(2 * size - 1).bit_length()
        return cls(
            keys=np.zeros(size, np.uint64),
            counts=np.zeros(size, np.int64),
            heads=np.full(slots, -1, np.int64),
            nexts=np.full(size, -1, np.int64),
            places=np.arange(size, dtype=np.int64),
            numbers=np.arange(size, dtype=np.int64),
        )


@compiled
def _slot(summary: Any, key: Any) -> Any:
    return np.int64(mix64(key) & np.uint64(summary.heads.size - 1))


@compiled
def _find(summary: Any, key: Any) -> Any:
    number = summary.heads[_slot(summary, key)]
    while number >= 0 and summary.keys[summary.places[number]] != key:
        number = summary.nexts[number]
    return number


@compiled
def _unlink(summary: Any, number: Any, key: Any) -> None:
    slot = _slot(summary, key)
    if summary.heads[slot] == number:
        summary.heads[slot] = summary.nexts[number]
        return
    before = summary.heads[slot]
    while summary.nexts[before] != number:
        before = summary.nexts[before]
    summary.nexts[before] = summary.nexts[number]


@compiled
def _first_place_with(counts: Any, count: Any, place: Any) -> Any:
    """Return the first position whose counter is at `count`; `place` is one of them."""
    low = 0
    while low < place:
        middle = (low + place) // 2
        if counts[middle] > count:
            low = middle + 1
        else:
            place = middle
    return place


@compiled
def observe(summary: Any, key: Any) -> Any:
    """Count one message of `key`; return its estimated count."""
    number = _find(summary, key)
    if number < 0:  # the key takes over the counter with the lowest count
        place = summary.keys.size - 1
        number = summary.numbers[place]
        if summary.counts[place] > 0:
            _unlink(summary, number, summary.keys[place])
        summary.keys[place] = key
        slot = _slot(summary, key)
        summary.nexts[number] = summary.heads[slot]
        summary.heads[slot] = number
    place = summary.places[number]
    count = summary.counts[place]
    if place > 0 and summary.counts[place - 1] == count:
        # Swap with the first counter of the same count, so that the increment keeps the order.
        first = _first_place_with(summary.counts, count, place)
        other = summary.numbers[first]
        summary.keys[place] = summary.keys[first]
        summary.keys[first] = key
        summary.numbers[place] = other
        summary.numbers[first] = number
        summary.places[other] = place
        summary.places[number] = first
        place = first
    summary.counts[place] = count + 1
    return count + 1
