"""Whether other keys are hot at other times.

A sample of messages, with times and keys, enters; the hottest key of each part of it leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.doctor.counts import Name

_PERIODS, _LEAST = 8, 50
"""So many parts with as many messages each; fewer where these would have less than so many."""

_COURSES = 5

_FAR = 5
"""Standard deviations of a count that are no chance."""


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
    pieces = max(1, min(_PERIODS, who.size // _LEAST))
    periods, shares = [], []
    for piece in np.array_split(np.arange(who.size), pieces) if who.size else []:
        counted = np.bincount(who[piece], minlength=len(names)) / piece.size
        top = int(counted.argmax())
        first, last = float(when[piece[0]]), float(when[piece[-1]])
        periods.append(Interval(first, last, names[top], float(counted[top])))
        shares.append(counted)
    moving: list[int] = []
    if len(shares) > 1:
        most, least = np.max(shares, axis=0), np.min(shares, axis=0)
        chance = _FAR * np.sqrt(most * pieces / who.size)
        is_moving = (most * workers > 1.25) & (least * workers < 0.75) & (most - least > chance)
        found = np.flatnonzero(is_moving)
        moving = found[np.argsort(-most[found], kind="stable")].tolist()
    courses = []
    if shares:
        rows = np.array(shares)
        hottest = np.argsort(-rows.max(axis=0), kind="stable")[:_COURSES].tolist()
        courses = [
            Course(names[key], tuple(rows[:, key].tolist()))
            for key in hottest
            if rows[:, key].any()
        ]
    untimed = int(np.count_nonzero(~has_time))
    come_and_go = tuple(names[key] for key in moving)
    return OverTime(tuple(periods), tuple(courses), times.size, untimed, come_and_go)
