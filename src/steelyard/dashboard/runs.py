"""The runs that a page shows, each with its slots so far."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.control.history import Slot
from steelyard.dashboard import wording
from steelyard.dashboard.reader import HistoryReader


@dataclass(frozen=True)
class ShownRun:
    """A stream with one grouping strategy."""

    name: str
    slots: Callable[[], Sequence[Slot]]
    """Returns all slots so far; called at every update of the page."""
    is_simulated: bool = False
    """Whether times are those of a simulated stream, not of a clock."""
    notice: Callable[[], str] = lambda: ""
    """Returns a notice for users, for example that there are no slots yet, or nothing."""
    has_blocks: bool = True
    """Whether virtual workers are shown; if each worker has only one, nothing can move."""


@dataclass(frozen=True)
class Finished:
    """The slots of a finished run."""

    known: Sequence[Slot]

    def __call__(self) -> Sequence[Slot]:
        return self.known


class Paced:
    """The slots of a finished run, revealed one after the other.

    The time starts with the first call.

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
"""Shortest time without a slot after which a notice appears, in seconds."""


def followed(reader: HistoryReader, clock: Callable[[], float] = time.time) -> ShownRun:
    """Return a run that follows the history of a control path."""
    return ShownRun(reader.shown, reader.slots, notice=lambda: _notice(reader, clock()))


def _notice(reader: HistoryReader, now: float) -> str:
    if reader.failure:
        return f"{reader.shown} cannot be read: {reader.failure}."
    last = reader.last
    if last is None:
        return f"{reader.shown} has no slots yet; the page waits for the first one."
    notices = []
    quiet = now - last.time
    if quiet > max(_QUIET, 10 * last.seconds):
        length = wording.seconds(quiet)
        notices.append(
            f"No slot has ended for {length}: the stream has no messages or has stopped."
        )
    if reader.unreadable:
        lines = wording.many(reader.unreadable, "line")
        notices.append(f"{lines} of {reader.shown} could not be read.")
    return " ".join(notices)
