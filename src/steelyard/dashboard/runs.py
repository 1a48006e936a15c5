"""What a page can show: runs, each with the slots that are known of it so far."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.control.history import Slot
from steelyard.dashboard import wording
from steelyard.dashboard.reader import HistoryReader


@dataclass(frozen=True)
class ShownRun:
    """A stream on one way to group it."""

    name: str
    slots: Callable[[], Sequence[Slot]]
    """All slots so far; asked again and again."""
    is_simulated: bool = False
    """Times are those of the stream, not of a clock."""
    notice: Callable[[], str] = lambda: ""
    """What people should know of it: that nothing is there yet, that lines cannot be read."""
    has_blocks: bool = True
    """Whether virtual workers are shown: where each worker has one, nothing can move."""


@dataclass(frozen=True)
class Finished:
    """The slots of a run that is over."""

    known: Sequence[Slot]

    def __call__(self) -> Sequence[Slot]:
        return self.known


class Paced:
    """The slots of a run that is over, one after the other: as if it ran now.

    The clock starts when somebody looks for the first time.

    >>> now = iter([0.0, 0.5, 99.0])
    >>> played = Paced(list("abc"), per_second=2, clock=lambda: next(now))
    >>> played(), played(), played()
    (['a'], ['a', 'b'], ['a', 'b', 'c'])
    """

    def __init__(
        self,
        known: Sequence[Slot],
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._known, self._per_second, self._clock = known, per_second, clock
        self._began: float | None = None

    def __call__(self) -> Sequence[Slot]:
        now = self._clock()
        if self._began is None:
            self._began = now
        return self._known[: 1 + int((now - self._began) * self._per_second)]


_QUIET = 60.0
"""Seconds without a slot, at least, after which that is told of."""


def followed(reader: HistoryReader, clock: Callable[[], float] = time.time) -> ShownRun:
    """A run of which a control path tells, while it lasts and afterwards."""
    return ShownRun(reader.shown, reader.slots, notice=lambda: _notice(reader, clock()))


def _notice(reader: HistoryReader, now: float) -> str:
    if reader.trouble:
        return f"{reader.shown} cannot be read: {reader.trouble}."
    last = reader.last
    if last is None:
        return f"There is no slot in {reader.shown} yet; this page waits for the first."
    told = []
    quiet = now - last.time
    if quiet > max(_QUIET, 10 * last.seconds):
        length = wording.seconds(quiet)
        told.append(f"No slot has ended for {length}: the stream is quiet, or was stopped.")
    if reader.unreadable:
        lines = wording.many(reader.unreadable, "line")
        told.append(f"{lines} of {reader.shown} could not be read.")
    return " ".join(told)
