"""A routing plan as one array of integers, for a lookup in code that cannot call `route`.

The cells of a plan enter; a table leaves. A few accesses to its array find the bin of a message.
"""

from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.plans.cells import WHOLE, Cells

Integers = NDArray[np.int64]

_BITS = 32
"""The bits of a place: the high half of a salt, a number from 0 to 2^32."""

_FREE = 2**13
_FACTOR = 32
"""A table may have `_FREE` entries for the parts of split buckets, or `_FACTOR` for each cell. More
entries save steps."""


class RoutingTable(NamedTuple):
    """A plan in one array.

    The entry of a whole bucket is the index of an entry with its bin. The entry of a split bucket
    is negative: `~start`, where the entries of its equal parts begin. A message is in the part
    `place >> shift`. From there each step leads to the next entry, `(entry + place) >> 32`. After
    the last step the entry is the bin.

    A step compares: the entry is `next * 2^32 + 2^32 - end`, so the sum carries into `next` if the
    place is not below the end.
    """

    entries: Integers
    shift: int
    steps: int


def routing_table(
    cells: Cells, labels: NDArray[np.integer], steps: int | None = None
) -> RoutingTable:
    """Return the table of a plan, with a label for each bin.

    Args:
        cells: The cells of the plan.
        labels: The numbers that the lookup gives for the bins.
        steps: The number of steps, enough for a binary search in any bucket; None to choose it for
            this plan.
    """
    spans = {bucket: cells.span(bucket) for bucket in np.flatnonzero(cells.copies > 1).tolist()}
    ends = [cells.ends[span][:-1] for span in spans.values()]
    bits = 0
    if steps is None:
        steps, bits = _fewest_steps(ends)
    table = _Building(cells, labels, steps)
    for (bucket, span), inside in zip(spans.items(), ends, strict=True):
        table.split(bucket, inside, cells.bins_of[span].tolist(), bits)
    return RoutingTable(table.entries(), _BITS - bits, steps)


def _fewest_steps(ends: list[Integers]) -> tuple[int, int]:
    """Return the number of steps, and the logarithm of the number of parts of a bucket."""
    if not ends:
        return 0, 0
    allowed = max(_FREE, _FACTOR * sum(own.size for own in ends))
    for steps in count(1):
        bits = max(_bits_needed(own, 2**steps - 1) for own in ends)
        if not bits or len(ends) << bits <= allowed:
            break
    return steps, bits


def _bits_needed(ends: Integers, most: int) -> int:
    """Return the number of leading bits that separate parts with at most `most` ends inside.

    Two numbers are in one part if they are equal in these bits.
    """
    if ends.size <= most:
        return 0
    return _BITS + 1 - int((ends[most:] ^ ends[:-most]).min()).bit_length()


class _Building:
    """The entries of a table while it is built."""

    def __init__(self, cells: Cells, labels: NDArray[np.integer], steps: int) -> None:
        self._steps = steps
        first = cells.bins_of[cells.starts[:-1]].astype(np.int64)
        self._first = (first + first.size).tolist()
        self._rest: list[int] = []
        self._direct = [labels.astype(np.int64)]
        """By the number of steps that are left: for each bin an entry that leads to it."""
        for _ in range(max(1, steps)):
            start = self._added(self._direct[-1].tolist())
            self._direct.append((start + np.arange(labels.size)) << _BITS)

    def split(self, bucket: int, ends: Integers, bins: list[int], bits: int) -> None:
        """Add the entries of a split bucket with these ends inside it, in `2 ** bits` parts."""
        lowest = np.arange(2**bits, dtype=np.int64) << (_BITS - bits)
        first = ends.searchsorted(lowest, "right")
        last = np.append(ends.searchsorted(lowest[1:]), ends.size)
        own = self._direct[self._steps][np.array(bins)[first]]
        for part in np.flatnonzero(first < last).tolist():
            inside = slice(first[part], last[part])
            own[part] = self._entry(ends[inside].tolist(), bins[inside.start :], self._steps)
        self._first[bucket] = ~self._added(own.tolist())

    def entries(self) -> Integers:
        """Return all entries."""
        return np.array(self._first + self._rest, np.int64)

    def _entry(self, ends: list[int], bins: list[int], steps: int) -> int:
        """Return the entry from which `steps` steps lead to the bin between these ends."""
        if not ends:
            return int(self._direct[steps][bins[0]])
        half = len(ends) // 2
        below = self._entry(ends[:half], bins, steps - 1)
        above = self._entry(ends[half + 1 :], bins[half + 1 :], steps - 1)
        return (self._added([below, above]) << _BITS) + WHOLE - ends[half]

    def _added(self, entries: list[int]) -> int:
        """Add entries, and return the index of the first of them."""
        start = len(self._first) + len(self._rest)
        self._rest += entries
        return start
