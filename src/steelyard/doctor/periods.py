"""Detect whether the hot keys change over time.

A sample of messages with times and keys enters; the hottest key of each period leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.key_text import Name

Shares = NDArray[np.float64]
"""A row for each period, a column for each key."""

_MOST_PERIODS = 8
"""Most periods of a sample; all have the same number of messages."""

_LEAST_MESSAGES = 50
"""Fewest messages of a period, if there is more than one."""

_MOST_COURSES = 5
"""Most keys that are followed from period to period."""

_SIGNIFICANT = 5
"""Standard deviations of a count above which a change is significant."""


@dataclass(frozen=True)
class Interval:
    """A period: consecutive messages in the order of time."""

    first: float
    last: float
    """Times of the first and the last message, in seconds."""
    name: Name
    """The hottest key of the period."""
    share: float
    """Share of the period's messages with that key."""


@dataclass(frozen=True)
class Course:
    """The share of one key in each period."""

    name: Name
    shares: tuple[float, ...]


@dataclass(frozen=True)
class OverTime:
    """The hottest keys of all periods."""

    periods: tuple[Interval, ...]
    courses: tuple[Course, ...]
    """Shares of the keys with the largest share in some period, at most five keys."""
    sampled: int
    """Number of sampled messages."""
    untimed: int
    """Number of sampled messages without a time; they are in no period."""
    come_and_go: tuple[Name, ...]
    """Keys that exceed the fair share of a worker in one period, and not in another."""

    @property
    def is_drifting(self) -> bool:
        """Whether the hot keys change."""
        return bool(self.come_and_go)


def over_time(
    times: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Name], workers: int
) -> OverTime:
    """Cut a sample into periods; `keys` are indexes into `names`, and times may be NaN.

    A key comes and goes if it has more than 5/4 of a worker's fair share in one period and less
    than 3/4 of it in another, and the difference is statistically significant.

    >>> times, keys = np.arange(200.0), np.repeat([0, 1], 100)
    >>> seen = over_time(times, keys, [("cat",), ("dog",)], workers=4)
    >>> [period.name[0] for period in seen.periods]
    ['cat', 'cat', 'dog', 'dog']
    >>> seen.come_and_go
    (('cat',), ('dog',))
    """
    has_time = np.isfinite(times)
    order = np.argsort(times[has_time], kind="stable")
    moments, in_order = times[has_time][order], keys[has_time][order]
    periods, shares = _periods(moments, in_order, names)
    return OverTime(
        periods,
        _courses(shares, names),
        sampled=times.size,
        untimed=int(np.count_nonzero(~has_time)),
        come_and_go=tuple(names[key] for key in _changing(shares, in_order.size, workers)),
    )


def _periods(
    times: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Name]
) -> tuple[tuple[Interval, ...], Shares]:
    """Cut messages, sorted by time, into periods; the shares have a row for each period."""
    if not keys.size:
        return (), np.empty((0, len(names)))
    number = max(1, min(_MOST_PERIODS, keys.size // _LEAST_MESSAGES))
    periods, shares = [], []
    for piece in np.array_split(np.arange(keys.size), number):
        counted = np.bincount(keys[piece], minlength=len(names)) / piece.size
        top = int(counted.argmax())
        first, last = float(times[piece[0]]), float(times[piece[-1]])
        periods.append(Interval(first, last, names[top], float(counted[top])))
        shares.append(counted)
    return tuple(periods), np.array(shares)


def _changing(shares: Shares, messages: int, workers: int) -> list[int]:
    """Find keys that exceed a worker's fair share in some periods only, the hottest first."""
    if len(shares) < 2:
        return []
    most, least = shares.max(axis=0), shares.min(axis=0)
    chance = _SIGNIFICANT * np.sqrt(most * len(shares) / messages)
    is_changing = (most * workers > 1.25) & (least * workers < 0.75) & (most - least > chance)
    found = np.flatnonzero(is_changing)
    return [int(key) for key in found[np.argsort(-most[found], kind="stable")]]


def _courses(shares: Shares, names: Sequence[Name]) -> tuple[Course, ...]:
    """Return the shares of the keys with the largest share in some period."""
    if not len(shares):
        return ()
    hottest = np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_COURSES].tolist()
    return tuple(
        Course(names[key], tuple(shares[:, key].tolist()))
        for key in hottest
        if shares[:, key].any()
    )
