"""The control path: the one place that knows what is in it.

    versions/<number>.json   plans and assignments, never changed; old ones are removed
    pins/<query>/<batch>     the version that all tasks of a micro-batch use: another name of it
    learned.json             what the control loop goes on from after a restart
    drained.json             workers that are to be left without work, by hand
    history.jsonl            what was lately, one line for each slot
    owner                    the query that uses the path

A pin is made by whoever comes first and is there at once with its content or not at all. Where
files cannot be linked there are no pins: the driver asks for the newest version once for each
micro-batch, and Spark hands the answer to all attempts of its tasks.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from steelyard.control.files import LocalFiles, files_at, persistently
from steelyard.control.version import ControlVersion

HISTORY = "history.jsonl"
"""The file that whoever watches a stream follows."""

_KEPT = 1
"""Pins of so many micro-batches that are done are kept: Spark replays none of them."""

_KEPT_UNPINNED = 16
"""So many versions are kept where none can be pinned, for the micro-batches that use them."""

_NONE = "none"
"""The content of a pin if there is no version yet."""

_HISTORY = 1000
"""Lines of history that are kept at least; at most twice as many."""

_REWRITTEN = 100
"""Lines of history that are kept where a file cannot be added to, so all of it is written anew."""


class ControlStore:
    """Versions, pins and what was learned, in a folder that driver and executors share.

    >>> import numpy as np, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = ControlStore(folder.name)
    >>> store.pin("query", batch=0)
    >>> store.publish(ControlVersion(1, None, np.zeros(4, np.int32)))
    >>> store.pin("query", batch=0)
    >>> store.pin("query", batch=1).number
    1
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._files = files_at(path)
        self._lines: list[str] | None = None

    @property
    def address(self) -> str:
        """Where it is; another store of this address is the same."""
        return self._files.address

    @property
    def shown(self) -> str:
        """The address for people."""
        return self._files.shown

    @property
    def can_pin(self) -> bool:
        """Whether tasks can agree on a version by themselves."""
        return self._files.can_link

    def exists(self) -> bool:
        """Whether anything is there."""
        return self._files.exists()

    def prepare(self) -> None:
        """Make the folder; refuse one that cannot be written."""
        try:
            self._files.prepare()
        except OSError as error:
            raise ValueError(
                f"control: the folder {self.shown} cannot be written: {error.strerror or error}"
            ) from error

    # Versions and pins: what keeps all tasks of a micro-batch of one mind.

    def publish(self, version: ControlVersion) -> None:
        """Make a version known, and remove those that nobody can need any more."""
        self._files.write(_of_version(version.number), version.to_json())
        needed = version.number  # those that are pinned have another name
        if not self.can_pin:
            needed -= _KEPT_UNPINNED - 1
        for number in self._numbers():
            if number < needed:
                self._files.remove(_of_version(number))

    def latest(self) -> int:
        """The number of the newest version; 0 if there is none."""
        return max(self._numbers(), default=0)

    def newest(self) -> ControlVersion | None:
        """The newest version, unless it is lost or cannot be read."""
        return self.read(self.latest())

    def read(self, number: int) -> ControlVersion | None:
        """A version, unless it is lost or cannot be read."""
        with suppress(FileNotFoundError, NotADirectoryError):
            return _understood(self._files.read(_of_version(number)))
        return None

    def pin(self, query: str, batch: int) -> ControlVersion | None:
        """The version that a micro-batch uses, for its retries and replays too, if there is one.

        The first to ask decides. The pin *is* that version, under another name: it stays what it
        is whatever becomes of the other.
        """
        files = self._linking()
        pin = _pin(query, batch)

        def decide() -> str:
            with suppress(FileNotFoundError):
                return files.read(pin)
            latest = self.latest()
            if latest:
                files.link(_of_version(latest), pin)
            else:
                files.write_if_absent(pin, _NONE)
            return files.read(pin)

        return _understood(persistently(decide))

    def is_pinned(self, query: str, batch: int) -> bool:
        """Whether somebody has asked for a micro-batch's version."""
        return self._files.exists(_pin(query, batch))

    def forget_pins(self, query: str, done: int) -> None:
        """Remove the pins of micro-batches long before one that is done, and of other queries."""
        files = self._linking()
        for other in files.names("pins"):
            if other != query:
                files.remove_folder(f"pins/{other}")
        for batch in files.names(f"pins/{query}"):
            if batch.isdecimal() and int(batch) <= done - _KEPT:
                files.remove(f"pins/{query}/{batch}")

    def _linking(self) -> LocalFiles:
        if not isinstance(self._files, LocalFiles):
            raise TypeError(f"nothing can be pinned on {self.shown}")
        return self._files

    def _numbers(self) -> list[int]:
        stems = [name.removesuffix(".json") for name in self._files.names("versions")]
        return [int(stem) for stem in stems if stem.isdecimal()]

    # One query at a time.

    def claim(self, query: str) -> None:
        """Refuse the path to a second query.

        Where files cannot be linked, two that start in the same moment may both get it.
        """
        owner = persistently(lambda: self._owner(query))
        if owner != query:
            raise ValueError(
                f"control: {self.shown} is in use by the query {owner}; give each query a path "
                f"of its own, or, if that query is gone, remove the file {self.shown}/owner"
            )

    def _owner(self, query: str) -> str:
        """The owner; this query, if there is none yet."""
        with suppress(FileNotFoundError):
            return self._files.read("owner")
        if isinstance(self._files, LocalFiles):
            self._files.write_if_absent("owner", query)
        else:
            self._files.write("owner", query)
        return self._files.read("owner")

    @property
    def is_claimed(self) -> bool:
        """Whether a query uses the path, or did when it died."""
        return self._files.exists("owner")

    def release(self, query: str) -> None:
        """Let another query have the path."""
        with suppress(OSError):
            if self._files.read("owner") == query:
                self._files.remove("owner")

    # What the driver remembers.

    def save_learned(self, learned: dict[str, Any]) -> None:
        """Keep what the control loop has learned."""
        self._files.write("learned.json", json.dumps(learned, separators=(",", ":")))

    def learned(self) -> dict[str, Any] | None:
        """What the control loop had learned; None if there is nothing that can be read."""
        try:
            found = json.loads(self._files.read("learned.json"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def drain(self, workers: Iterable[int]) -> None:
        """Say which workers are to be left without work."""
        self._files.write("drained.json", json.dumps(sorted(set(workers))))

    def drained(self) -> set[int]:
        """The workers that are to be left without work."""
        try:
            return set(json.loads(self._files.read("drained.json")))
        except (OSError, ValueError, TypeError):
            return set()

    def add_history(self, line: str) -> None:
        """One line more; the oldest go when there are very many."""
        lines = self.history() if self._lines is None else self._lines
        self._lines = [*lines, line]
        if not isinstance(self._files, LocalFiles):
            self._lines = self._lines[-_REWRITTEN:]
        elif len(self._lines) > 2 * _HISTORY:
            self._lines = self._lines[-_HISTORY:]
        else:
            self._files.append(HISTORY, line)
            return
        self._files.write(HISTORY, "".join(f"{kept}\n" for kept in self._lines))

    def history(self) -> list[str]:
        """The lines of late; one that was cut off in the middle of writing is left out."""
        try:
            text = self._files.read(HISTORY)
        except OSError:
            return []
        return text[: text.rfind("\n") + 1].splitlines()


def _of_version(number: int) -> str:
    return f"versions/{number:09}.json"


def _pin(query: str, batch: int) -> str:
    return f"pins/{query}/{batch}"


@lru_cache(maxsize=4)  # by its text, whatever its name: texts never lie
def _understood(text: str) -> ControlVersion | None:
    try:
        return ControlVersion.from_json(text)
    except ValueError:
        return None
