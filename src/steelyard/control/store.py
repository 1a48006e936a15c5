"""The control path: the one place that reads and writes it.

    versions/<number>.json   plans and assignments, never changed; old ones are removed
    pins/<query>/<batch>     the version that all tasks of a micro-batch use: another name of it
    learned.json             what the control loop goes on from after a restart
    drained.json             workers that are to be left without work, by hand
    history.jsonl            what was lately, one line for each slot
    owner                    the query that uses the path

A pin is made by whoever comes first and is there at once with its content or not at all. That
takes a file system that can link: local disks and shared mounts.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from steelyard.control.version import ControlVersion

_KEPT = 1
"""Pins of so many micro-batches that are done are kept: Spark replays none of them."""

_NONE = "none"
"""The content of a pin if there is no version yet."""

_HISTORY = 1000
"""Lines of history that are kept at least; at most twice as many."""

_TRIES = 5
"""So often something is tried when folders vanish in between."""

T = TypeVar("T")


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
        self.path = _local(os.fspath(path))
        self._lines: int | None = None

    def prepare(self) -> None:
        """Make the folder; refuse one that cannot be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / f".{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ValueError(
                f"control: the folder {self.path} cannot be written: {error.strerror or error}"
            ) from error

    # Versions and pins: what keeps all tasks of a micro-batch of one mind.

    def publish(self, version: ControlVersion) -> None:
        """Make a version known, and remove those that nobody can need any more."""
        self._write(f"versions/{self._of_version(version.number).name}", version.to_json())
        for number in self._numbers():
            if number < version.number:  # those that are pinned have another name
                self._of_version(number).unlink(missing_ok=True)

    def latest(self) -> int:
        """The number of the newest version; 0 if there is none."""
        return max(self._numbers(), default=0)

    def newest(self) -> ControlVersion | None:
        """The newest version, unless it is lost or cannot be read."""
        return self.read(self.latest())

    def read(self, number: int) -> ControlVersion | None:
        """A version, unless it is lost or cannot be read."""
        with suppress(OSError):
            return _understood(self._of_version(number).read_text())
        return None

    def pin(self, query: str, batch: int) -> ControlVersion | None:
        """The version that a micro-batch uses, for its retries and replays too, if there is one.

        The first to ask decides. The pin *is* that version, under another name: it stays what it
        is whatever becomes of the other.
        """
        pin = self._pin(query, batch)

        def decide() -> str:
            with suppress(FileNotFoundError):
                return pin.read_text()
            latest = self.latest()
            if not latest:
                self._write(f"pins/{query}/{batch}", _NONE, if_absent=True)
                return pin.read_text()
            pin.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.link(self._of_version(latest), pin)
            return pin.read_text()

        return _understood(_persistently(decide))

    def is_pinned(self, query: str, batch: int) -> bool:
        """Whether somebody has asked for a micro-batch's version."""
        return self._pin(query, batch).exists()

    def forget_pins(self, query: str, done: int) -> None:
        """Remove the pins of micro-batches long before one that is done, and of other queries."""
        with suppress(OSError):
            for folder in (self.path / "pins").iterdir():
                if folder.name != query:
                    for pin in folder.iterdir():
                        pin.unlink(missing_ok=True)
                    folder.rmdir()
            for pin in (self.path / "pins" / query).iterdir():
                if pin.name.isdecimal() and int(pin.name) <= done - _KEPT:
                    pin.unlink(missing_ok=True)

    def _of_version(self, number: int) -> Path:
        return self.path / f"versions/{number:09}.json"

    def _pin(self, query: str, batch: int) -> Path:
        return self.path / "pins" / query / str(batch)

    def _numbers(self) -> Iterable[int]:
        with suppress(OSError):
            return [int(p.stem) for p in (self.path / "versions").iterdir() if p.stem.isdecimal()]
        return []

    # One query at a time.

    def claim(self, query: str) -> None:
        """Refuse the path to a second query."""

        def decide() -> str:
            self._write("owner", query, if_absent=True)
            return (self.path / "owner").read_text()

        owner = _persistently(decide)
        if owner != query:
            raise ValueError(
                f"control: {self.path} is in use by the query {owner}; give each query a path of "
                f"its own, or, if that query is gone, remove the file {self.path / 'owner'}"
            )

    @property
    def is_claimed(self) -> bool:
        """Whether a query uses the path, or did when it died."""
        return (self.path / "owner").exists()

    def release(self, query: str) -> None:
        """Let another query have the path."""
        with suppress(OSError):
            if (self.path / "owner").read_text() == query:
                (self.path / "owner").unlink()

    # What the driver remembers.

    def save_learned(self, learned: dict[str, Any]) -> None:
        """Keep what the control loop has learned."""
        self._write("learned.json", json.dumps(learned, separators=(",", ":")))

    def learned(self) -> dict[str, Any] | None:
        """What the control loop had learned; None if there is nothing that can be read."""
        try:
            found = json.loads((self.path / "learned.json").read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def drain(self, workers: Iterable[int]) -> None:
        """Say which workers are to be left without work."""
        self._write("drained.json", json.dumps(sorted(set(workers))))

    def drained(self) -> set[int]:
        """The workers that are to be left without work."""
        try:
            return set(json.loads((self.path / "drained.json").read_text()))
        except (OSError, ValueError, TypeError):
            return set()

    def add_history(self, line: str) -> None:
        """One line more; the oldest half goes when there are very many."""
        if self._lines is None:
            self._lines = len(self.history())
        if self._lines >= 2 * _HISTORY:
            kept = self.history()[-_HISTORY:]
            self._write("history.jsonl", "".join(f"{old}\n" for old in kept))
            self._lines = len(kept)
        self._lines += 1

        def add() -> None:
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / "history.jsonl").open("a") as history:
                history.write(line + "\n")

        _persistently(add)

    def history(self) -> list[str]:
        """The lines of late; one that was cut off in the middle of writing is left out."""
        try:
            text = (self.path / "history.jsonl").read_text()
        except OSError:
            return []
        return text[: text.rfind("\n") + 1].splitlines()

    def _write(self, name: str, text: str, *, if_absent: bool = False) -> None:
        """Write a file of which nobody ever sees a part; keep one that is there if asked to."""
        target = self.path / name

        def write() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            written = target.parent / f".{uuid.uuid4().hex}"
            try:
                written.write_text(text)
                if not if_absent:
                    written.replace(target)
                    return
                with suppress(FileExistsError):
                    os.link(written, target)
            finally:
                written.unlink(missing_ok=True)

        _persistently(write)


@lru_cache(maxsize=4)  # by its text, whatever its name: texts never lie
def _understood(text: str) -> ControlVersion | None:
    try:
        return ControlVersion.from_json(text)
    except ValueError:
        return None


def _persistently(act: Callable[[], T]) -> T:
    """Do it again if a folder vanished in between.

    A folder that vanishes while `mkdir` looks whether it is one is told as a file in the way.
    """
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError, FileExistsError):
            return act()
    return act()


def _local(path: str) -> Path:
    """The folder of a path or of a file: address."""
    address = urlsplit(path)
    if not address.scheme:
        return Path(path).absolute()
    if address.scheme == "file" and address.netloc in ("", "localhost"):
        return Path(unquote(address.path))
    raise ValueError(
        f"control: {path!r} must be a folder on a local disk or a shared mount (a plain path or "
        f"file:/...); on {address.scheme}: nobody can create a file only if it is absent"
    )
