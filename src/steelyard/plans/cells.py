"""The cells of buckets: the bins that share a bucket's messages, and their JSON form.

The bins and ends of all cells enter; numbers for JSON leave. The same cells can be read back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WHOLE = 2**32
"""The end of a bucket's last cell: the ends of cells are numbers out of 2^32."""


@dataclass(frozen=True)
class Cell:
    """A bin that gets the fraction `weight` of a bucket's messages."""

    bin: int
    weight: float


class Cells(NamedTuple):
    """The cells of all buckets; those of bucket b are from `starts[b]` to `starts[b + 1]`."""

    starts: NDArray[np.int64]
    bins_of: NDArray[np.int32]
    """The bin of each cell."""
    ends: NDArray[np.int64]
    """The end of each cell, as a number out of 2^32."""

    @property
    def copies(self) -> NDArray[np.int64]:
        """The number of cells of each bucket."""
        return np.diff(self.starts)

    def span(self, bucket: int) -> slice:
        """Return the positions of a bucket's cells."""
        return slice(self.starts[bucket], self.starts[bucket + 1])


def cells_to_json(cells: Cells) -> list[int | list[int]]:
    """Return one number for a bucket with one cell, [bin, end, bin, end, ...] for others."""
    pairs = np.stack([cells.bins_of, cells.ends], axis=1).ravel().tolist()
    return [
        pairs[start] if stop == start + 2 else pairs[start:stop]
        for start, stop in pairwise((2 * cells.starts).tolist())
    ]


def cells_from_json(bins: int, buckets: Sequence[int | Sequence[int]]) -> Cells:
    """Return the cells that `cells_to_json` wrote; raise a ValueError for anything else."""
    pairs = [(where, WHOLE) if isinstance(where, int) else where for where in buckets]
    # Every source task reads a plan, so only the line above loops over the buckets.
    numbers = np.array(list(map(len, pairs)), np.int64)
    flat = np.array(list(chain.from_iterable(pairs)))
    _check_cells(bins, numbers, flat)
    starts = np.concatenate(([0], np.cumsum(numbers // 2)))
    return Cells(starts, flat[::2].astype(np.int32), flat[1::2].copy())


def _check_cells(bins: int, numbers: NDArray[np.int64], flat: NDArray[np.int64]) -> None:
    """Raise a ValueError unless the numbers describe valid cells.

    `flat` alternates bins and ends; `numbers` says how many of its entries each bucket has.
    """
    if not isinstance(bins, int) or flat.dtype != np.int64:
        raise ValueError("the bins and ends of cells must be whole numbers")
    if (numbers % 2 != 0).any() or (numbers == 0).any():
        raise ValueError("a bucket must have a bin and an end for each of its cells")
    owners = np.repeat(np.arange(numbers.size), numbers // 2)
    outside = np.flatnonzero((flat[::2] < 0) | (flat[::2] >= bins))
    if outside.size:
        raise ValueError(
            f"the bins of a bucket must be from 0 to {bins - 1}, "
            f"got {flat[::2][outside[0]]} in bucket {owners[outside[0]]}"
        )
    ends, stops = flat[1::2], np.cumsum(numbers // 2)
    starts = np.concatenate(([0], ends[:-1]))
    starts[stops[:-1]] = 0
    wrong = starts >= ends
    wrong[stops - 1] |= ends[stops - 1] != WHOLE
    if wrong.any():
        bucket = owners[np.flatnonzero(wrong)[0]]
        raise ValueError(f"the ends of the cells of bucket {bucket} must increase up to {WHOLE}")
