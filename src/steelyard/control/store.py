"""The control path. Only this module knows the names and the content of its files.

    versions/<number>.json   plans and assignments, never changed; the newest are kept
    identity                 a random text by which tasks recognize the folder that the driver uses
    learned.json             the state that the control loop resumes from after a restart
    drained.json             the workers that a user has excluded from work
    history.jsonl            the latest slots, one line each
    owner                    the query that uses the path
    definitions/<query>      the definition of the state in the query's checkpoint, and the
                             micro-batch in which it was first used
    batches/<query>          the pins of the latest batches of a real-time query
    caught-up/<query>        the last restart after which it has read again what it had read before

The driver writes all files except `owner`, `definitions` and `batches`. Once in a micro-batch, one
task finds the newest version. The result, a `Pin`, travels to all attempts of all tasks with
Spark's plan of the micro-batch. So all tasks follow the same version: a task that does not find it
fails.
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
from steelyard.control.batch_pins import BatchPins
from steelyard.control.definition import Definition
from steelyard.control.version import ControlVersion

HISTORY = "history.jsonl"
"""The file that dashboards follow."""

_KEPT_VERSIONS = 8
"""The number of newest versions that are kept, for micro-batches that still use one of them."""

_KEPT_LINES = 1000
"""The history keeps at least this many lines, and at most twice this number."""

_KEPT_LINES_REWRITTEN = 100
"""The lines of history that are kept on stores that write the whole file for each new line."""

_UNREADABLE = (OSError, ValueError)
"""The errors of reading a file that is lost, damaged, or not text."""


class Pin(NamedTuple):
    """The number of a version and the checksum of its text, which identify its content.

    >>> Pin.from_long(Pin(7, 0xCAFE).to_long())
    Pin(number=7, checksum=51966)
    """

    number: int
    checksum: int

    @classmethod
    def of(cls, number: int, text: str) -> "Pin":
        return cls(number, zlib.crc32(text.encode()))

    def to_long(self) -> int:
        """Return the pin as one number, which Spark can carry with every row."""
        return self.number << 32 | self.checksum

    @classmethod
    def from_long(cls, value: int) -> "Pin":
        return cls(value >> 32, value & 0xFFFFFFFF)


NO_VERSION = Pin(0, 0)
"""The pin of a micro-batch if no version can be read."""


class ControlStore:
    """The versions and the saved state of a control loop, in a folder that all machines share.

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
        """The text by which tasks recognize this folder; "" before `prepare`."""

    @property
    def address(self) -> str:
        """The address of the folder; two stores with the same address use the same files."""
        return self._files.address

    @property
    def shown(self) -> str:
        """The address without secrets, to be shown in messages."""
        return self._files.shown

    def exists(self) -> bool:
        """Return whether the folder exists."""
        return self._files.exists()

    def prepare(self) -> None:
        """Create the folder; raise a ValueError if its files cannot be written."""
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
        """Write the identity again if its file was lost during the query."""
        if self.identity:
            self._files.create_if_absent("identity", self.identity)

    def is_identified_by(self, identity: str) -> bool:
        """Return whether the folder on this machine is the one with that identity."""
        try:
            return self._files.read_text("identity") == identity
        except _UNREADABLE:
            return False

    # Versions, which sources follow.

    def publish(self, version: ControlVersion) -> None:
        """Write a version, and remove the versions that no task can need any more."""
        self._files.replace(_version_file(version.number), version.to_json())
        for number in self._numbers():
            if number <= version.number - _KEPT_VERSIONS:
                self._files.delete(_version_file(number))

    def latest(self) -> int:
        """Return the number of the newest version; 0 if there is none."""
        return max(self._numbers(), default=0)

    def pin_newest(self) -> Pin:
        """Return the pin of the newest version that can be read."""
        for number in sorted(self._numbers(), reverse=True):
            with suppress(*_UNREADABLE):
                text = self._files.read_text(_version_file(number))
                if _parsed(text) is not None:
                    return Pin.of(number, text)
        return NO_VERSION

    def newest(self) -> ControlVersion | None:
        """Return the newest version that can be read; None if there is none."""
        with suppress(LookupError):
            return self.pinned(self.pin_newest())
        return None

    def pinned(self, pin: Pin) -> ControlVersion | None:
        """Return the version of a pin; None for `NO_VERSION`.

        Raises:
            LookupError: The version is not in the folder.
        """
        return None if pin == NO_VERSION else _version_at(self.address, pin)

    def _numbers(self) -> list[int]:
        """Return the numbers of all versions; files with other names are ignored."""
        names = self._files.list_folder("versions")
        numbers = (int(name.removesuffix(".json")) for name in names if _VERSION.fullmatch(name))
        return [number for number in numbers if number < _MOST_VERSIONS]

    # Real-time queries, which follow the same version again when a batch is repeated.

    def pin_batch(self, query: str, batch: int) -> Pin:
        """Return the pin of a batch: that of its first attempt, if the batch is repeated.

        Raises:
            OSError: The pin cannot be written.
        """
        pins = self._batch_pins(query)
        newest = self.pin_newest().to_long()
        pins = pins.begin(batch, newest, caught_up=self._caught_up(query))
        self._files.replace(f"batches/{query}", pins.to_json())
        return Pin.from_long(pins.current)

    def is_repeating(self, query: str) -> bool:
        """Return whether a query reads messages again that an interrupted batch may have read."""
        pins = self._batch_pins(query)
        return pins.is_held and self._caught_up(query) < pins.restarts

    def set_caught_up(self, query: str) -> None:
        """Note that a query has read again all messages of its interrupted batches."""
        self._files.replace(f"caught-up/{query}", str(self._batch_pins(query).restarts))

    def _batch_pins(self, query: str) -> BatchPins:
        if not self._files.exists(f"batches/{query}"):
            return BatchPins()
        return BatchPins.from_json(self._files.read_text(f"batches/{query}"))

    def _caught_up(self, query: str) -> int:
        with suppress(*_UNREADABLE):
            return int(self._files.read_text(f"caught-up/{query}"))
        return 0

    # One query at a time.

    def claim(self, query: str) -> None:
        """Register a query as the owner of the path; raise a ValueError if another query uses it.

        On object stores, two queries that start at the same time may both own the path. If the file
        `owner` can be neither read nor written, every query may use the path.
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

        A saved definition is binding once the micro-batch that first used it is finished: before
        that, the checkpoint holds no state of it. If the file can be neither read nor written, the
        definitions are not compared.
        """
        name, current = f"definitions/{query}", definition.to_json()
        first, found = "", ""
        with suppress(*_UNREADABLE):
            first, _, found = self._files.read_text(name).partition(" ")
        if first.isdecimal() and int(first) < batch:
            definition.require_same(found)
        elif found != current:
            with suppress(OSError):
                self._files.replace(name, f"{batch} {current}")

    def require_same_as_before(self, query: str, definition: Definition) -> None:
        """Raise a ValueError if the last run of a query had another definition."""
        found = ""
        with suppress(*_UNREADABLE):
            found = self._files.read_text(f"definitions/{query}").partition(" ")[2]
        if found:
            definition.require_same(found)

    def owner(self) -> str:
        """Return the query that uses the path, or that was killed while it did; "" if none."""
        try:
            return self._files.read_text("owner").strip()
        except _UNREADABLE:
            return ""

    def release(self, query: str) -> None:
        """Release the path if this query owns it."""
        if self.owner() == query:
            with suppress(OSError):
                self._files.delete("owner")

    # The state of the driver.

    def save_learned(self, learned: dict[str, Any]) -> None:
        """Write the state of the control loop."""
        self._files.replace("learned.json", json.dumps(learned, separators=(",", ":")))

    def learned(self) -> dict[str, Any] | None:
        """Return the saved state of the control loop; None if it cannot be read."""
        try:
            found = json.loads(self._files.read_text("learned.json"))
        except _UNREADABLE:
            return None
        return found if isinstance(found, dict) else None

    def drain(self, workers: Iterable[int]) -> None:
        """Set the workers that get no work."""
        self._files.replace("drained.json", json.dumps(sorted(set(workers))))

    def drained(self) -> set[int]:
        """Return the drained workers, which get no work."""
        try:
            found = json.loads(self._files.read_text("drained.json"))
        except _UNREADABLE:
            return set()
        numbers = found if isinstance(found, list) else []
        return {number for number in numbers if isinstance(number, int)}

    def add_history(self, line: str) -> None:
        """Add a line to the history; remove the oldest lines if there are too many."""
        is_whole = True
        if self._lines is None:
            self._lines, is_whole = self._read_history()
        self._lines = [*self._lines, line]
        if not self._files.appends_in_place:
            self._lines = self._lines[-_KEPT_LINES_REWRITTEN:]
        elif len(self._lines) > 2 * _KEPT_LINES:
            self._lines = self._lines[-_KEPT_LINES:]
        elif is_whole:  # a line that is appended to a truncated line would be lost
            self._files.append(HISTORY, line)
            return
        self._files.replace(HISTORY, "".join(f"{kept}\n" for kept in self._lines))

    def history(self) -> list[str]:
        """Return the lines of the history, without lines that are truncated or not text."""
        return self._read_history()[0]

    def _read_history(self) -> tuple[list[str], bool]:
        """Return the lines, and whether the last line is complete."""
        try:
            content = self._files.read_bytes(HISTORY)
        except OSError:
            return [], True
        *whole, rest = content.split(b"\n")
        lines = []
        for line in whole:
            with suppress(UnicodeDecodeError):
                lines.append(line.decode())
        return lines, not rest


_VERSION = re.compile(r"[0-9]{9,10}\.json", re.ASCII)

_MOST_VERSIONS = 2**31
"""A pin has 31 bits for the number of a version. Files with larger numbers are not versions."""


def _version_file(number: int) -> str:
    return f"versions/{number:09}.json"


@lru_cache(maxsize=4)  # all tasks of a micro-batch use one pin, and a pin identifies its content
def _version_at(address: str, pin: Pin) -> ControlVersion | None:
    files = files_at(address)
    with suppress(*_UNREADABLE):
        text = files.read_text(_version_file(pin.number))
        if Pin.of(pin.number, text) == pin:
            return _parsed(text)
    raise LookupError(f"version {pin.number} is not in {files.shown}")


@lru_cache(maxsize=4)  # keyed by the text, because the content of a file may change
def _parsed(text: str) -> ControlVersion | None:
    try:
        return ControlVersion.from_json(text)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError):
        return None
