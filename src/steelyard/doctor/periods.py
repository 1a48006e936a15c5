"""Whether other keys are hot at other times.

A sample of messages, with times and keys, enters; the hottest key of each part of it leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.doctor.key_counts import Name

Shares = NDArray[np.float64]
"""A row for each period, a column for each key."""

_MOST_PERIODS = 8
"""Most periods that a sample is cut into, all with the same number of messages."""

_LEAST_MESSAGES = 50
"""Fewest messages of a period, where there is more than one."""

_MOST_COURSES = 5
"""Most keys that are followed from period to period."""

_SIGNIFICANT = 5
"""Standard deviations of a count beyond which a change is not by chance."""


@dataclass(frozen=True)
class Interval:
    """A part of the messages, those after one another in time."""

    first: float
    last: float
    """The times of its first and its last message, in seconds."""
    name: Name
    """Its hottest key."""
    share: float
    """That key's part of its messages."""


@dataclass(frozen=True)
class Course:
    """A key's part of the messages, period after period."""

    name: Name
    shares: tuple[float, ...]


@dataclass(frozen=True)
class OverTime:
    """The hottest keys, period after period."""

    periods: tuple[Interval, ...]
    courses: tuple[Course, ...]
    """Of the keys that have the most in some period, five at most."""
    sampled: int
    """Messages that were looked at."""
    untimed: int
    """Messages among them without a time, which are left out."""
    come_and_go: tuple[Name, ...]
    """Keys that are too much for a worker in one period, and easily fit in another."""

    @property
    def is_drifting(self) -> bool:
        """Whether the hot keys change."""
        return bool(self.come_and_go)


def over_time(
    times: NDArray[np.float64], keys: NDArray[np.int64], names: Sequence[Name], workers: int
) -> OverTime:
    """Cut a sample into periods; `keys` are places in `names`, and times may be NaN.

    A key comes and goes if it has more than 5/4 of a worker's fair share in some period and less
    than 3/4 of it in another, and the two are further apart than chance would have them.

    >>> times, keys = np.arange(200.0), np.repeat([0, 1], 100)
    >>> seen = over_time(times, keys, [("cat",), ("dog",)], workers=4)
    >>> [period.name[0] for period in seen.periods]
    ['cat', 'cat', 'dog', 'dog']
    >>> seen.come_and_go
    (('cat',), ('dog',))
    """
    has_time = np.isfinite(times)
    order = np.argsort(times[has_time], kind="stable")
    when, who = times[has_time][order], keys[has_time][order]
    periods, shares = _periods(when, who, names)
    return OverTime(
        periods,
        _courses(shares, names),
        sampled=times.size,
        untimed=int(np.count_nonzero(~has_time)),
        come_and_go=tuple(names[key] for key in _changing(shares, who.size, workers)),
    )


def _periods(
    when: NDArray[np.float64], who: NDArray[np.int64], names: Sequence[Name]
) -> tuple[tuple[Interval, ...], Shares]:
    """Cut messages, sorted by time, into periods; the shares have a row for each of them."""
    if not who.size:
        return (), np.empty((0, len(names)))
    number = max(1, min(_MOST_PERIODS, who.size // _LEAST_MESSAGES))
    periods, shares = [], []
    for piece in np.array_split(np.arange(who.size), number):
        counted = np.bincount(who[piece], minlength=len(names)) / piece.size
        top = int(counted.argmax())
        first, last = float(when[piece[0]]), float(when[piece[-1]])
        periods.append(Interval(first, last, names[top], float(counted[top])))
        shares.append(counted)
    return tuple(periods), np.array(shares)


def _changing(shares: Shares, messages: int, workers: int) -> list[int]:
    """Find keys that are too much for a worker in one period only, the hottest first."""
    if len(shares) < 2:
        return []
    most, least = shares.max(axis=0), shares.min(axis=0)
    chance = _SIGNIFICANT * np.sqrt(most * len(shares) / messages)
    is_changing = (most * workers > 1.25) & (least * workers < 0.75) & (most - least > chance)
    found = np.flatnonzero(is_changing)
    return [int(key) for key in found[np.argsort(-most[found], kind="stable")]]


def _courses(shares: Shares, names: Sequence[Name]) -> tuple[Course, ...]:
    """Follow the keys with the largest share in some period."""
    if not len(shares):
        return ()
    hottest = np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_COURSES].tolist()
    return tuple(
        Course(names[key], tuple(shares[:, key].tolist()))
        for key in hottest
        if shares[:, key].any()
    )
