"""Files in a folder on this machine, or on a mount that all machines share."""

import errno
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from steelyard.control.files import Files

_TRIES = 5
"""Attempts at an operation while another process removes folders."""

T = TypeVar("T")


class LocalFiles(Files):
    """A local folder. Symbolic links below it are not followed.

    Otherwise a user who can write to the folder could make the driver write to, or remove, files in
    other folders. Only the owner can read the folder and its files. If the folder exists already,
    its group keeps its permissions: with mode 2770 the folder can be shared with other users.
    """

    appends_in_place = True
    costs_per_request = False

    def __init__(self, path: Path) -> None:
        self._path, self.address = path, str(path)

    @property
    def shown(self) -> str:
        return self.address

    @property
    def local_path(self) -> Path:
        return self._path

    def prepare(self) -> None:
        probe = f".{uuid.uuid4().hex}"
        self.replace(probe, "")
        self.delete(probe)

    def exists(self, name: str = "") -> bool:
        return (self._path / name).exists()

    def read_bytes(self, name: str, begin: int = 0) -> bytes:
        with self._folder_of(name) as folder:
            found = os.open(Path(name).name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
            with open(found, "rb") as file:  # noqa: PTH123  # a file descriptor has no path
                file.seek(begin)
                return file.read()

    def stamp(self, name: str) -> tuple[int, ...] | None:
        with suppress(FileNotFoundError, NotADirectoryError):
            found = (self._path / name).stat(follow_symlinks=False)
            return found.st_size, found.st_mtime_ns, found.st_ino
        return None

    def replace(self, name: str, text: str) -> None:
        def replace() -> None:
            with self._folder_of(name, create=True) as folder:
                written = f".{uuid.uuid4().hex}"
                try:
                    self._write_new(folder, written, text)
                    os.replace(written, Path(name).name, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    with suppress(OSError):
                        os.unlink(written, dir_fd=folder)
                    raise

        _retried(replace)

    def create_if_absent(self, name: str, text: str) -> None:
        def create() -> None:
            with self._folder_of(name, create=True) as folder:
                written, final = f".{uuid.uuid4().hex}", Path(name).name
                self._write_new(folder, written, text)
                try:
                    os.link(written, final, src_dir_fd=folder, dst_dir_fd=folder)
                except FileExistsError:
                    pass
                except OSError:  # without hard links, a reader may see an empty file for a moment
                    with suppress(FileExistsError):
                        self._write_new(folder, final, text)
                finally:
                    os.unlink(written, dir_fd=folder)

        _retried(create)

    def append(self, name: str, line: str) -> None:
        def append() -> None:
            with self._folder_of(name, create=True) as folder:
                self._write_new(folder, Path(name).name, line + "\n", os.O_APPEND)

        _retried(append)

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError), self._folder_of(name) as folder:
            os.unlink(Path(name).name, dir_fd=folder)

    def list_folder(self, folder: str) -> list[str]:
        with suppress(OSError), self._folder_of(str(Path(folder) / "any")) as opened:
            return os.listdir(opened)  # noqa: PTH208  # a file descriptor has no path
        return []

    @contextmanager
    def _folder_of(self, name: str, *, create: bool = False) -> Iterator[int]:
        """Open the folder of a file, without following links below the control path."""
        if create:
            with suppress(FileExistsError):
                self._path.parent.mkdir(parents=True)
            with suppress(FileExistsError):
                self._path.mkdir(mode=0o700)
        opened = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in Path(name).parent.parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700 | self._group(), dir_fd=opened)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)

    def _write_new(self, folder: int, name: str, text: str, how: int = os.O_EXCL) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | how
        written = os.open(name, flags, 0o600 | self._group() & 0o066, dir_fd=folder)
        with open(written, "w", encoding="utf-8") as file:  # noqa: PTH123  # as above
            file.write(text)

    def _group(self) -> int:
        """Return the permissions of the folder's group."""
        return self._path.stat().st_mode & 0o070


def _retried(operation: Callable[[], T]) -> T:
    """Run an operation, and repeat it if another process removed a folder meanwhile."""
    for _ in range(_TRIES - 1):
        try:
            return operation()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EEXIST):
                raise
    return operation()
