"""The cells of buckets: the bins that share a bucket's messages, and how plans write them.

The bins and ends of all cells enter; numbers for JSON leave, and become the same cells again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WHOLE = 2**32
"""The weights of a bucket's cells are parts of this."""


@dataclass(frozen=True)
class Cell:
    """A bin that takes `weight` of a bucket's messages."""

    bin: int
    weight: float


class Cells(NamedTuple):
    """The cells of all buckets in arrays; those of bucket b are from `starts[b]` to the next."""

    starts: NDArray[np.int64]
    bins_of: NDArray[np.int32]
    """By cell: its bin."""
    ends: NDArray[np.int64]
    """By cell: where it ends, as a part of 2^32."""

    @property
    def copies(self) -> NDArray[np.int64]:
        """For every bucket the number of its cells."""
        return np.diff(self.starts)

    def span(self, bucket: int) -> slice:
        """Where the cells of a bucket are."""
        return slice(self.starts[bucket], self.starts[bucket + 1])


def cells_to_json(cells: Cells) -> list[int | list[int]]:
    """One number for a whole bucket, [bin, end, bin, end, ...] for others."""
    pairs = np.stack([cells.bins_of, cells.ends], axis=1).ravel().tolist()
    return [
        pairs[start] if stop == start + 2 else pairs[start:stop]
        for start, stop in pairwise((2 * cells.starts).tolist())
    ]


def cells_from_json(bins: int, buckets: Sequence[int | Sequence[int]]) -> Cells:
    """The cells that `cells_to_json` wrote; an error if these are none."""
    pairs = [(where, WHOLE) if isinstance(where, int) else where for where in buckets]
    # Every source task reads a plan: nothing here is done bucket by bucket but the above.
    numbers = np.array(list(map(len, pairs)), np.int64)
    flat = np.array(list(chain.from_iterable(pairs)))
    _check_cells(bins, numbers, flat)
    starts = np.concatenate(([0], np.cumsum(numbers // 2)))
    return Cells(starts, flat[::2].astype(np.int32), flat[1::2].copy())


def _check_cells(bins: int, numbers: NDArray[np.int64], flat: NDArray[np.int64]) -> None:
    """Refuse what are no cells: for every bucket so many numbers, bins and ends in turns."""
    if not isinstance(bins, int) or flat.dtype != np.int64:
        raise ValueError("bins and ends of cells must be whole numbers")
    if (numbers % 2 != 0).any() or (numbers == 0).any():
        raise ValueError("a bucket needs a bin and an end for each of its cells")
    owners = np.repeat(np.arange(numbers.size), numbers // 2)
    outside = np.flatnonzero((flat[::2] < 0) | (flat[::2] >= bins))
    if outside.size:
        raise ValueError(f"bucket {owners[outside[0]]} names a bin outside 0 to {bins - 1}")
    ends, stops = flat[1::2], np.cumsum(numbers // 2)
    starts = np.concatenate(([0], ends[:-1]))
    starts[stops[:-1]] = 0
    wrong = starts >= ends
    wrong[stops - 1] |= ends[stops - 1] != WHOLE
    if wrong.any():
        bucket = owners[np.flatnonzero(wrong)[0]]
        raise ValueError(f"the cells of bucket {bucket} do not end, rising, at {WHOLE}")
