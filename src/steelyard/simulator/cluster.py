"""Workers and how fast each is, over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.validation import require_between, require_whole

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """From a time in seconds, or from the arrival of a message (counted from 0) on."""

    speeds: tuple[float, ...]
    at: float | None = None
    at_message: int | None = None


@dataclass(frozen=True)
class Cluster:
    """Workers with speeds in messages per second, which may change.

    >>> cluster = Cluster.machines(4, fast=1, times=5, total=80)
    >>> cluster.speeds
    (50.0, 10.0, 10.0, 10.0)
    >>> cluster.then(at=3600, fast=2, times=3).changes[0].speeds
    (30.0, 30.0, 10.0, 10.0)
    """

    speeds: tuple[float, ...]
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if not self.speeds:
            raise ValueError("a cluster needs at least one worker, got none")
        for speeds in (self.speeds, *(change.speeds for change in self.changes)):
            for speed in speeds:
                require_between("a worker's speed", speed, above=0)
            if len(speeds) != self.workers:
                raise ValueError(
                    f"a change must give the speeds of all {self.workers} workers, "
                    f"got {len(speeds)}"
                )

    @classmethod
    def of(cls, speeds: ArrayLike) -> Self:
        """A cluster of workers with these speeds."""
        return cls(tuple(np.asarray(speeds, np.float64).tolist()))

    @classmethod
    def machines(cls, workers: int, *, fast: int = 0, times: float = 1.0, total: float) -> Self:
        """{y, z} of the paper: `fast` machines `times` as fast as the others, `total` in all."""
        return cls(_speeds(workers, fast, times, total))

    def then(
        self,
        *,
        fast: int,
        times: float,
        at: float | None = None,
        at_message: int | None = None,
    ) -> "Cluster":
        """The same total spread otherwise, from a time or a message on."""
        if (at is None) == (at_message is None):
            raise ValueError("a change happens at a time or at a message: give one of the two")
        speeds = _speeds(self.workers, fast, times, self.total)
        return replace(self, changes=(*self.changes, Change(speeds, at, at_message)))

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.speeds)

    @property
    def total(self) -> float:
        """Messages per second of all workers together, at the start."""
        return sum(self.speeds)

    def timetable(self, message_times: Sequence[float]) -> tuple[Floats, Floats]:
        """When speeds begin to hold (rising, from 0), and the speeds: one row each.

        `message_times` are the arrival times of the messages that `at_message` names, in order.
        """
        named = iter(message_times)
        begins, rows = [0.0], [self.speeds]
        for change in self.changes:
            begin = change.at if change.at is not None else next(named)
            require_between("the time of a change", begin, least=begins[-1])
            begins.append(begin)
            rows.append(change.speeds)
        return np.array(begins), np.array(rows)


def _speeds(workers: int, fast: int, times: float, total: float) -> tuple[float, ...]:
    require_whole("workers", workers, least=1)
    require_whole("fast", fast, least=0, most=workers)
    require_between("times", times, above=0)
    require_between("total", total, above=0)
    relative = np.ones(workers)
    relative[:fast] = times
    return tuple((relative * (total / relative.sum())).tolist())
