"""Find the ranks over which keys follow Zipf's law, and the line through them.

The counts of some ranks enter; the line of a figure leaves, or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_FARTHEST = np.log(1.5)
"""The line is nowhere farther from the counts than by this factor."""

_FEWEST_RANKS = 5
"""Fewest ranks of a line."""

_SHORTEST = np.log(10)
"""The last rank of a line is at least ten times the first one."""


@dataclass(frozen=True)
class ZipfLine:
    """A straight line in a figure with logarithmic axes, over some ranks."""

    exponent: float
    height: float
    """Messages of the key with rank 1, if the line is extended to it."""
    first: int
    """First rank of the line."""
    last: int
    """Last rank of the line."""

    def messages(self, rank: float) -> float:
        """Return the messages of a key on the line."""
        return float(self.height * rank**-self.exponent)


def zipf_line(curve: Sequence[tuple[int, int]]) -> ZipfLine | None:
    """Fit a line over the longest range of ranks that it describes; None if there is none.

    The fit gives equal weights to the points of the curve, which are evenly spaced on a logarithmic
    scale. So it shows what the eye sees; in the exponent of the report every message has the same
    weight.

    >>> line = zipf_line([(rank, round(1e6 / rank)) for rank in range(1, 101)])
    >>> round(line.exponent, 2), line.first, line.last
    (1.0, 1, 100)
    >>> zipf_line([(rank, 2 ** (30 - rank)) for rank in range(1, 31)]) is None
    True
    """
    ranks = np.log([rank for rank, _ in curve])
    counts = np.log([count for _, count in curve])
    best: ZipfLine | None = None
    longest = _SHORTEST
    for start in range(len(ranks)):
        for end in range(len(ranks), start + _FEWEST_RANKS - 1, -1):
            x, y = ranks[start:end], counts[start:end]
            if x[-1] - x[0] < longest - 1e-9:
                break
            slope, height = np.polyfit(x, y, 1)
            if np.abs(y - height - slope * x).max() <= _FARTHEST:
                longest = x[-1] - x[0]
                first, last = curve[start][0], curve[end - 1][0]
                best = ZipfLine(float(-slope), float(np.exp(height)), first, last)
                break
    return best
