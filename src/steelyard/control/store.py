"""The control path: the one place that knows what is in it.

    versions/<number>.json   plans and assignments, never changed; the newest are kept
    identity                 a random text by which tasks recognize the folder that the driver uses
    learned.json             what the control loop resumes from after a restart
    drained.json             workers that get no work, by hand
    history.jsonl            the last slots, one line each
    owner                    the query that uses the path
    definitions/<query>      what the state in its checkpoint stands for, since which micro-batch

The driver writes all of it, but for the owner. Once in a micro-batch one task asks for the newest
version. What it finds, a `Pin`, travels to all attempts of all tasks with Spark's plan of the
micro-batch, so that they cannot disagree: a task that does not find that very version fails.
"""

import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from steelyard.control.addresses import files_at
from steelyard.control.definition import Definition
from steelyard.control.version import ControlVersion

HISTORY = "history.jsonl"
"""The file that dashboards follow."""

_KEPT_VERSIONS = 8
"""The newest versions are kept, for micro-batches that still use one of them."""

_KEPT_LINES = 1000
"""Lines of history that are kept at least; at most twice as many."""

_KEPT_LINES_REWRITTEN = 100
"""Lines of history that are kept where each new line means to write the whole file again."""

_UNREADABLE = (OSError, ValueError)
"""What reading a file raises if it is lost, damaged, or not text."""


class Pin(NamedTuple):
    """Names a version by its number and the checksum of its text, so by its content.

    >>> Pin.from_long(Pin(7, 0xCAFE).to_long())
    Pin(number=7, checksum=51966)
    """

    number: int
    checksum: int

    @classmethod
    def of(cls, number: int, text: str) -> "Pin":
        return cls(number, zlib.crc32(text.encode()))

    def to_long(self) -> int:
        """As one number that Spark can carry beside every row."""
        return self.number << 32 | self.checksum

    @classmethod
    def from_long(cls, value: int) -> "Pin":
        return cls(value >> 32, value & 0xFFFFFFFF)


NO_VERSION = Pin(0, 0)
"""What a micro-batch follows if there is no version that can be read."""


class ControlStore:
    """Versions and what the control loop has learned, in a folder that driver and executors share.

    >>> import numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = ControlStore(folder.name)
    >>> store.pin_newest() == NO_VERSION
    True
    >>> store.publish(ControlVersion(1, None, np.zeros(4, np.int32)))
    >>> store.pinned(store.pin_newest()).number
    1
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files = files_at(path)
        self._lines: list[str] | None = None
        self.identity = ""
        """The text by which tasks recognize this folder; known once it is prepared."""

    @property
    def address(self) -> str:
        """Where it is; another store of this address is the same."""
        return self._files.address

    @property
    def shown(self) -> str:
        """The address for messages."""
        return self._files.shown

    def exists(self) -> bool:
        """Return whether there is such a folder."""
        return self._files.exists()

    def prepare(self) -> None:
        """Create the folder; raise a ValueError if it cannot be written."""
        try:
            self._files.prepare()
            self._files.replace("versions/.probe", "")
            self._files.delete("versions/.probe")
            self._files.create_if_absent("identity", uuid.uuid4().hex)
            self.identity = self._files.read_text("identity")
        except OSError as error:
            raise ValueError(
                f"control: the folder {self.shown} cannot be written: {error.strerror or error}"
            ) from error
        except ValueError as error:
            raise ValueError(
                f"control: the file {self.shown}/identity is damaged; remove it and start again"
            ) from error

    def keep_identity(self) -> None:
        """Write the identity again if it was lost while the query runs."""
        if self.identity:
            self._files.create_if_absent("identity", self.identity)

    def is_identified_by(self, identity: str) -> bool:
        """Return whether this folder, as it is seen here, is the one with that identity."""
        try:
            return self._files.read_text("identity") == identity
        except _UNREADABLE:
            return False

    # Versions: what sources follow.

    def publish(self, version: ControlVersion) -> None:
        """Write a version, and remove those that no task can need any more."""
        self._files.replace(_of_version(version.number), version.to_json())
        for number in self._numbers():
            if number <= version.number - _KEPT_VERSIONS:
                self._files.delete(_of_version(number))

    def latest(self) -> int:
        """Return the number of the newest version; 0 if there is none."""
        return max(self._numbers(), default=0)

    def pin_newest(self) -> Pin:
        """Name the newest version that can be read."""
        for number in sorted(self._numbers(), reverse=True):
            with suppress(*_UNREADABLE):
                text = self._files.read_text(_of_version(number))
                if _understood(text) is not None:
                    return Pin.of(number, text)
        return NO_VERSION

    def newest(self) -> ControlVersion | None:
        """Return the newest version that can be read, if there is one."""
        with suppress(LookupError):
            return self.pinned(self.pin_newest())
        return None

    def pinned(self, pin: Pin) -> ControlVersion | None:
        """Return the version that a pin names; raise a LookupError if it is not here.

        None for `NO_VERSION`.
        """
        return None if pin == NO_VERSION else _version_at(self.address, pin)

    def _numbers(self) -> list[int]:
        """The numbers of the files that are named as versions are; others are left alone."""
        names = self._files.list_folder("versions")
        numbers = (int(name.removesuffix(".json")) for name in names if _VERSION.fullmatch(name))
        return [number for number in numbers if number < _MOST_VERSIONS]

    # One query at a time.

    def claim(self, query: str) -> None:
        """Raise a ValueError if another query uses the path.

        On object stores two queries that start at the same moment may both get it, and where the
        owner can be neither read nor written, all may.
        """
        owner = self.owner() or self._claimed_by(query)
        if owner != query:
            raise ValueError(
                f"control: {self.shown} is in use by the query {owner}; give each query a path "
                f"of its own, or, if that query is gone, remove the file {self.shown}/owner"
            )

    def _claimed_by(self, query: str) -> str:
        with suppress(OSError):
            if self._files.exists("owner"):  # damaged
                self._files.delete("owner")
            self._files.create_if_absent("owner", query)
        return self.owner() or query

    def require_same(self, query: str, batch: int, definition: Definition) -> None:
        """Raise a ValueError if a query resumes its checkpoint with another definition.

        A definition counts once the micro-batch that first used it is done: before that, no state
        was made by it. One that can be neither read nor written is not compared.
        """
        name, mine = f"definitions/{query}", definition.to_json()
        first, found = "", ""
        with suppress(*_UNREADABLE):
            first, _, found = self._files.read_text(name).partition(" ")
        if first.isdecimal() and int(first) < batch:
            definition.require_same(found)
        elif found != mine:
            with suppress(OSError):
                self._files.replace(name, f"{batch} {mine}")

    def require_same_as_before(self, query: str, definition: Definition) -> None:
        """Raise a ValueError if a query had another definition when it last ran."""
        found = ""
        with suppress(*_UNREADABLE):
            found = self._files.read_text(f"definitions/{query}").partition(" ")[2]
        if found:
            definition.require_same(found)

    def owner(self) -> str:
        """Return the query that uses the path, or did when it was killed; "" if there is none."""
        try:
            return self._files.read_text("owner").strip()
        except _UNREADABLE:
            return ""

    def release(self, query: str) -> None:
        """Free the path, if this query uses it."""
        if self.owner() == query:
            with suppress(OSError):
                self._files.delete("owner")

    # What the driver remembers.

    def save_learned(self, learned: dict[str, Any]) -> None:
        """Write what the control loop has learned."""
        self._files.replace("learned.json", json.dumps(learned, separators=(",", ":")))

    def learned(self) -> dict[str, Any] | None:
        """Return what the control loop had learned; None if there is nothing that can be read."""
        try:
            found = json.loads(self._files.read_text("learned.json"))
        except _UNREADABLE:
            return None
        return found if isinstance(found, dict) else None

    def drain(self, workers: Iterable[int]) -> None:
        """Set which workers get no work."""
        self._files.replace("drained.json", json.dumps(sorted(set(workers))))

    def drained(self) -> set[int]:
        """Return the workers that get no work."""
        try:
            found = json.loads(self._files.read_text("drained.json"))
        except _UNREADABLE:
            return set()
        numbers = found if isinstance(found, list) else []
        return {number for number in numbers if isinstance(number, int)}

    def add_history(self, line: str) -> None:
        """Add a line; the oldest are removed when there are many."""
        is_whole = True
        if self._lines is None:
            self._lines, is_whole = self._read_history()
        self._lines = [*self._lines, line]
        if not self._files.appends_in_place:
            self._lines = self._lines[-_KEPT_LINES_REWRITTEN:]
        elif len(self._lines) > 2 * _KEPT_LINES:
            self._lines = self._lines[-_KEPT_LINES:]
        elif is_whole:  # a line that is added to one that was cut off would be lost with it
            self._files.append(HISTORY, line)
            return
        self._files.replace(HISTORY, "".join(f"{kept}\n" for kept in self._lines))

    def history(self) -> list[str]:
        """Return the last lines, without those that are not text or were cut off."""
        return self._read_history()[0]

    def _read_history(self) -> tuple[list[str], bool]:
        """Read the lines, and whether the last one is whole."""
        try:
            found = self._files.read_bytes(HISTORY)
        except OSError:
            return [], True
        *whole, rest = found.split(b"\n")
        lines = []
        for line in whole:
            with suppress(UnicodeDecodeError):
                lines.append(line.decode())
        return lines, not rest


_VERSION = re.compile(r"[0-9]{9,10}\.json", re.ASCII)

_MOST_VERSIONS = 2**31
"""A pin has so many bits for the number of a version: no file with a larger number is ours."""


def _of_version(number: int) -> str:
    return f"versions/{number:09}.json"


@lru_cache(maxsize=4)  # all tasks of a micro-batch ask for the same, and a pin names its content
def _version_at(address: str, pin: Pin) -> ControlVersion | None:
    files = files_at(address)
    with suppress(*_UNREADABLE):
        text = files.read_text(_of_version(pin.number))
        if Pin.of(pin.number, text) == pin:
            return _understood(text)
    raise LookupError(f"version {pin.number} is not in {files.shown}")


@lru_cache(maxsize=4)  # by the text: what a file name stands for may change
def _understood(text: str) -> ControlVersion | None:
    try:
        return ControlVersion.from_json(text)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError):
        return None
