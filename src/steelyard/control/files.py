"""The file systems that a control path can be on.

A folder on a local disk or a shared mount can link: a file is made by whoever comes first, with all
of its content at once. What `pyarrow.fs` reaches (S3, Google's and Azure's stores, HDFS) cannot be
relied on for that: the last who writes wins there.
"""

import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

REMOTE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""The addresses that are left to `pyarrow.fs`."""

_TRIES = 5
"""So often something is tried when folders vanish in between."""

T = TypeVar("T")


class Files(ABC):
    """Small texts under names with slashes; nobody ever sees a part of one."""

    can_link: bool
    """Whether the first who makes a file wins."""
    address: str
    """Where they are: `files_at` finds the same with it in another process."""

    @property
    def shown(self) -> str:
        """The address for people, without secrets."""
        return self.address

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder; an OSError if it cannot be written."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Whether there is such a file; without a name, whether there is the folder."""

    @abstractmethod
    def read(self, name: str) -> str:
        """The text; an OSError if there is none."""

    @abstractmethod
    def read_from(self, name: str, begin: int) -> bytes:
        """What comes after so many bytes; an OSError if there is no such file."""

    @abstractmethod
    def stamp(self, name: str) -> tuple[int, ...] | None:
        """Its length and what else tells whether it has changed; None if it is not there."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """Put it in the place of what was there."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The files, and folders, of a folder; none if it is not there."""


class LocalFiles(Files):
    """In a folder of this machine, or of a mount that all machines share."""

    can_link = True

    def __init__(self, path: Path) -> None:
        self.path, self.address = path, str(path)

    def prepare(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        probe = self.path / f".{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()

    def exists(self, name: str = "") -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> str:
        return (self.path / name).read_text()

    def read_from(self, name: str, begin: int) -> bytes:
        with (self.path / name).open("rb") as file:
            file.seek(begin)
            return file.read()

    def stamp(self, name: str) -> tuple[int, ...] | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            found = (self.path / name).stat()
            return found.st_size, found.st_mtime_ns, found.st_ino
        return None

    def write(self, name: str, text: str) -> None:
        self._write(name, text, Path.replace)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self.path / name).unlink()

    def names(self, folder: str) -> list[str]:
        with suppress(OSError):
            return [path.name for path in (self.path / folder).iterdir()]
        return []

    # What only folders can.

    def write_if_absent(self, name: str, text: str) -> None:
        """Keep what is there, if anything is."""

        def link(written: Path, target: Path) -> None:
            with suppress(FileExistsError):
                os.link(written, target)

        self._write(name, text, link)

    def link(self, name: str, other: str) -> None:
        """Give a file another name, unless that is taken: what it holds stays under either."""
        (self.path / other).parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.link(self.path / name, self.path / other)

    def append(self, name: str, line: str) -> None:
        """Add a line to a file."""

        def add() -> None:
            self.path.mkdir(parents=True, exist_ok=True)
            with (self.path / name).open("a") as file:
                file.write(line + "\n")

        persistently(add)

    def remove_folder(self, name: str) -> None:
        """Remove a folder and its files, if it is there."""
        with suppress(OSError):
            for path in (self.path / name).iterdir():
                path.unlink(missing_ok=True)
            (self.path / name).rmdir()

    def _write(self, name: str, text: str, put: Callable[[Path, Path], object]) -> None:
        target = self.path / name

        def write() -> None:
            target.parent.mkdir(parents=True, exist_ok=True)
            written = target.parent / f".{uuid.uuid4().hex}"
            try:
                written.write_text(text)
                put(written, target)
            finally:
                written.unlink(missing_ok=True)

        persistently(write)


class RemoteFiles(Files):
    """Where `pyarrow.fs` reaches; credentials are found as it finds them."""

    can_link = False

    def __init__(self, address: str) -> None:
        from pyarrow.fs import FileSystem

        self.address = address
        self._system, self._path = FileSystem.from_uri(address)
        self._path = self._path.rstrip("/")

    @property
    def shown(self) -> str:
        return without_secrets(self.address)

    def prepare(self) -> None:
        probe = f".{uuid.uuid4().hex}"
        self.write(probe, "")
        self.remove(probe)

    def exists(self, name: str = "") -> bool:
        from pyarrow.fs import FileType

        info = self._system.get_file_info(f"{self._path}/{name}".rstrip("/"))
        return bool(info.type != FileType.NotFound)

    def read(self, name: str) -> str:
        with self._system.open_input_stream(f"{self._path}/{name}") as file:
            return bytes(file.read()).decode()

    def read_from(self, name: str, begin: int) -> bytes:
        with self._system.open_input_file(f"{self._path}/{name}") as file:
            file.seek(min(begin, file.size()))
            return bytes(file.read())

    def stamp(self, name: str) -> tuple[int, ...] | None:
        info = self._system.get_file_info(f"{self._path}/{name}")
        return (info.size, info.mtime_ns or 0) if info.is_file else None

    def write(self, name: str, text: str) -> None:
        path = f"{self._path}/{name}"
        if self._system.type_name != "hdfs":  # objects appear when they are whole
            with self._system.open_output_stream(path) as file:
                file.write(text.encode())
            return
        self._system.create_dir(path.rpartition("/")[0], recursive=True)
        written = f"{path.rpartition('/')[0]}/.{uuid.uuid4().hex}"
        with self._system.open_output_stream(written) as file:
            file.write(text.encode())
        self.remove(name)  # HDFS moves onto nothing else
        self._system.move(written, path)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._system.delete_file(f"{self._path}/{name}")

    def names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        found = FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        return [info.base_name for info in self._system.get_file_info(found)]


def files_at(path: str | os.PathLike[str]) -> Files:
    """The files of a path, of a file: address, or of one that `pyarrow.fs` reaches."""
    path = os.fspath(path)
    address = urlsplit(path)
    if not address.scheme:
        return LocalFiles(Path(path).absolute())
    if address.scheme == "file" and address.netloc in ("", "localhost"):
        return LocalFiles(Path(unquote(address.path)))
    if address.scheme in REMOTE:
        try:
            return RemoteFiles(path)
        except (OSError, ValueError, NotImplementedError) as error:
            raise ValueError(
                f"control: {without_secrets(path)!r} cannot be reached: {error}"
            ) from error
    remote = ", ".join(f"{scheme}://" for scheme in REMOTE)
    raise ValueError(
        f"control: {without_secrets(path)!r} must be a folder on a local disk or a shared mount "
        f"(a plain path or file:/...), or on one of {remote}"
    )


def without_secrets(address: str) -> str:
    """An address less its user, password and options.

    >>> without_secrets("s3://me:secret@bucket/control?region=eu")
    's3://bucket/control'
    """
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def persistently(act: Callable[[], T]) -> T:
    """Do it again if a folder vanished in between.

    A folder that vanishes while `mkdir` looks whether it is one is told as a file in the way.
    """
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError, FileExistsError):
            return act()
    return act()
