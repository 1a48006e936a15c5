"""The workers of a cluster and their speeds over time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.validation import require_between, require_whole

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """New speeds from a time in seconds, or from the arrival of a message, counted from 0."""

    speeds: tuple[float, ...]
    at: float | None = None
    at_message: int | None = None


@dataclass(frozen=True)
class Cluster:
    """Workers with speeds in messages per second; the speeds may change over time.

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
                    f"a change must have the speeds of all {self.workers} workers, "
                    f"got {len(speeds)} speeds"
                )

    @classmethod
    def of(cls, speeds: ArrayLike) -> Self:
        """Create a cluster of workers with these speeds."""
        return cls(tuple(np.asarray(speeds, np.float64).tolist()))

    @classmethod
    def machines(cls, workers: int, *, fast: int = 0, times: float = 1.0, total: float) -> Self:
        """Create the paper's cluster {y, z}: y fast machines, each z times as fast as the others.

        Args:
            workers: The number of workers.
            fast: The number of fast machines, y.
            times: The speed of a fast machine relative to the others, z.
            total: The messages per second of all workers together.
        """
        return cls(_speeds(workers, fast, times, total))

    def then(
        self,
        *,
        fast: int,
        times: float,
        at: float | None = None,
        at_message: int | None = None,
    ) -> "Cluster":
        """Return a cluster that changes its fast machines but keeps its total speed.

        Args:
            fast: The number of fast machines after the change.
            times: The speed of a fast machine relative to the others.
            at: The time of the change in seconds.
            at_message: The number of the message that arrives at the change, counted from 0.
        """
        if (at is None) == (at_message is None):
            raise ValueError("pass either `at` or `at_message`: the time or message of the change")
        speeds = _speeds(self.workers, fast, times, self.total)
        return replace(self, changes=(*self.changes, Change(speeds, at, at_message)))

    @property
    def workers(self) -> int:
        """The number of workers."""
        return len(self.speeds)

    @property
    def total(self) -> float:
        """The messages per second of all workers together, at the start."""
        return sum(self.speeds)

    def timetable(self, message_times: Sequence[float]) -> tuple[Floats, Floats]:
        """Return the ascending times from which speeds apply, and the speeds of each time.

        `message_times` are the arrival times of the messages of `at_message`, in order.
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
