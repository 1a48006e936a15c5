"""Follow the history of a control path, or of a file of its lines.

A path enters; the slots that are known so far leave, each time one asks. Lines are added while it
is read, the file is cut when it is long, replaced where it cannot be added to, and may not be there
yet. What was seen once stays, up to some thousands of slots.
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
"""Slots that are remembered."""

_REST = 2.0
"""Seconds between two looks at a store that is paid for by the request."""

_COARSE = 2.0
"""Seconds for which a file that has changed may change again without another stamp."""


class HistoryReader:
    """The slots of a history that grows.

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
        self._looked = self._changed = -inf
        self._slots: deque[Slot] = deque(maxlen=_KEPT)
        self._stamp: tuple[int, ...] | None = None
        self._position = 0
        self._last = b""
        """The last line that was read, which ends at the position."""
        self.unreadable = 0
        """Lines that are no slots."""
        self.trouble = ""
        """Why it could not be read the last time, if so."""

    @property
    def shown(self) -> str:
        """Where it reads, for people."""
        return f"{self._files.shown}/{self._name}"

    @property
    def last(self) -> Slot | None:
        """The newest slot that is known."""
        return self._slots[-1] if self._slots else None

    def exists(self) -> bool:
        """Whether there is something to read."""
        return self._files.stamp(self._name) is not None

    def slots(self) -> list[Slot]:
        """All slots that are known now."""
        now = self._clock()
        if now - self._looked >= self._rest:
            self._looked = now
            self._look(now)
        return list(self._slots)

    def _look(self, now: float) -> None:
        self.trouble = ""
        try:
            stamp = self._files.stamp(self._name)
            if stamp != self._stamp:
                self._changed = now
            if stamp is not None and now - self._changed < _COARSE:
                self._read()
            self._stamp = stamp
        except FileNotFoundError:
            pass  # it vanished in between, and may come back
        except OSError as error:
            self.trouble = str(error.strerror or error)

    def _read(self) -> None:
        begin = self._position - len(self._last)
        text = self._files.read_bytes(self._name, begin)
        goes_on = text.startswith(self._last)
        if not goes_on:
            text = self._files.read_bytes(self._name, 0)
            begin = 0
            self._last = b""
        end = text.rfind(b"\n") + 1  # what comes after it is still being written
        fresh = text[len(self._last) : end]
        slots = self._understood(fresh.splitlines())
        if goes_on:
            self._slots.extend(slots)
        else:
            self._take_over(slots)
        self._position = begin + end
        if end:
            self._last = text[text.rfind(b"\n", 0, end - 1) + 1 : end]

    def _take_over(self, slots: list[Slot]) -> None:
        """Another file in the place of the old: the same run, cut, or a new one."""
        known = {(slot.slot, slot.time) for slot in self._slots}
        if not any((slot.slot, slot.time) in known for slot in slots):
            self._slots.clear()
        self._slots.extend(slot for slot in slots if (slot.slot, slot.time) not in known)

    def _understood(self, lines: list[bytes]) -> list[Slot]:
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
    """The files and the name of a history: in a control path, or a file itself."""
    files = files_at(path)
    itself = files.local_path
    if itself is not None and (itself.is_file() or itself.suffix == ".jsonl"):
        return files_at(itself.parent), itself.name
    return files, HISTORY


def read_finished(path: str | os.PathLike[str]) -> list[Slot]:
    """The slots of a run that is over; a ValueError if there are none."""
    reader = HistoryReader(path)
    slots = reader.slots()
    if not slots:
        what = "has no slots" if reader.exists() else "is not there"
        raise ValueError(f"replay: {reader.shown} {what}; give a history.jsonl, or a control path")
    return slots
