"""Follow the history of a control path, or of a file with the same lines.

A path enters; each call returns the slots that are known so far. The file may not exist yet, it
grows while it is read, it is truncated when it is long, and object stores replace it. The reader
keeps slots that it has read, up to some thousands.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from math import inf

from steelyard.control.addresses import files_at
from steelyard.control.files import Files
from steelyard.control.history import Slot
from steelyard.control.store import HISTORY

_KEPT = 4000
"""Most slots that are kept."""

_REST = 2.0
"""Seconds between two reads of a store that charges for requests."""

_COARSE = 2.0
"""Seconds after a change in which a file may change again without a new time stamp."""


class HistoryReader:
    """Reads a history that grows.

    Args:
        path: A control path, or a file of history lines.
        rest: Seconds between two reads; by default 2 for a store that charges for requests, else 0.
        clock: The clock that measures `rest`.

    >>> import tempfile
    >>> from steelyard.control.store import ControlStore
    >>> from steelyard.dashboard.simulated import quiet_slot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reader = HistoryReader(folder)
    ...     before = len(reader.slots())
    ...     ControlStore(folder).add_history(quiet_slot(1, [2]).to_json())
    ...     before, len(reader.slots())
    (0, 1)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        rest: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files, self._name = _found(path)
        needed = _REST if self._files.costs_per_request else 0.0
        self._rest, self._clock = needed if rest is None else rest, clock
        self._refreshed = self._changed = -inf
        self._slots: deque[Slot] = deque(maxlen=_KEPT)
        self._stamp: tuple[int, ...] | None = None
        self._position = 0
        self._last = b""
        """The last line that was read; it ends at the position."""
        self.unreadable = 0
        """Number of lines that are not slots."""
        self.failure = ""
        """The reason why the last read failed, or nothing."""

    @property
    def shown(self) -> str:
        """The address of the history, for messages."""
        return f"{self._files.shown}/{self._name}"

    @property
    def last(self) -> Slot | None:
        """The newest known slot."""
        return self._slots[-1] if self._slots else None

    def exists(self) -> bool:
        """Return whether the history exists."""
        return self._files.stamp(self._name) is not None

    def slots(self) -> list[Slot]:
        """Return all slots that are known now."""
        now = self._clock()
        if now - self._refreshed >= self._rest:
            self._refreshed = now
            self._refresh(now)
        return list(self._slots)

    def _refresh(self, now: float) -> None:
        self.failure = ""
        try:
            stamp = self._files.stamp(self._name)
            if stamp != self._stamp:
                self._changed = now
            if stamp is not None and now - self._changed < _COARSE:
                self._read()
            self._stamp = stamp
        except FileNotFoundError:
            pass  # the file was removed meanwhile, and may come back
        except OSError as error:
            self.failure = str(error.strerror or error)

    def _read(self) -> None:
        begin = self._position - len(self._last)
        text = self._files.read_bytes(self._name, begin)
        is_continued = text.startswith(self._last)
        if not is_continued:
            text = self._files.read_bytes(self._name, 0)
            begin = 0
            self._last = b""
        end = text.rfind(b"\n") + 1  # an incomplete last line is still being written
        fresh = text[len(self._last) : end]
        slots = self._parsed(fresh.splitlines())
        if is_continued:
            self._slots.extend(slots)
        else:
            self._take_over(slots)
        self._position = begin + end
        if end:
            self._last = text[text.rfind(b"\n", 0, end - 1) + 1 : end]

    def _take_over(self, slots: list[Slot]) -> None:
        """Add the slots of a replaced file: of the same run, truncated, or of a new run."""
        known = {(slot.slot, slot.time) for slot in self._slots}
        if not any((slot.slot, slot.time) in known for slot in slots):
            self._slots.clear()
        self._slots.extend(slot for slot in slots if (slot.slot, slot.time) not in known)

    def _parsed(self, lines: list[bytes]) -> list[Slot]:
        slots = []
        for line in lines:
            if not line.strip():
                continue
            try:
                slots.append(Slot.from_json(line.decode()))
            except ValueError:
                self.unreadable += 1
        return slots


def _found(path: str | os.PathLike[str]) -> tuple[Files, str]:
    """Return the folder and the file name of a history."""
    files = files_at(path)
    itself = files.local_path
    if itself is not None and (itself.is_file() or itself.suffix == ".jsonl"):
        return files_at(itself.parent), itself.name
    return files, HISTORY


def read_finished(path: str | os.PathLike[str]) -> list[Slot]:
    """Return the slots of a finished run.

    Raises:
        ValueError: There are no slots.
    """
    reader = HistoryReader(path)
    slots = reader.slots()
    if not slots:
        problem = "has no slots" if reader.exists() else "does not exist"
        raise ValueError(
            f"replay: {reader.shown} {problem}; name a history.jsonl or a control path"
        )
    return slots
