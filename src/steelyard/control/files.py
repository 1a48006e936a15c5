"""Small texts in one place that driver and executors share: the interface.

Names and texts enter; texts leave. `steelyard.control.addresses` opens the implementations.
"""

from abc import ABC, abstractmethod
from pathlib import Path

from steelyard.control.redaction import without_secrets


class Files(ABC):
    """Small texts under names with slashes. A reader never sees part of a text.

    Every method raises an OSError if the file system fails. Folders appear with the first file in
    them.
    """

    address: str
    """Where the files are; `files_at` opens the same place with it in another process."""
    appends_in_place: bool
    """Whether `append` writes the new line alone, and not the whole file again."""
    costs_per_request: bool
    """Whether every request is paid for, so that readers should not ask too often."""

    @property
    def shown(self) -> str:
        """The address without secrets, for messages."""
        return without_secrets(self.address)

    @property
    @abstractmethod
    def local_path(self) -> Path | None:
        """The path of the place on this machine; None if it is elsewhere."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the folder, and raise an OSError if it cannot be written."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Return whether the file exists; without a name, whether the folder does."""

    def read_text(self, name: str) -> str:
        """Return a text; raise an OSError if there is none, a ValueError if it is not UTF-8."""
        return self.read_bytes(name).decode()

    @abstractmethod
    def read_bytes(self, name: str, begin: int = 0) -> bytes:
        """Return the bytes of a file from position `begin` on; none if the file is shorter."""

    @abstractmethod
    def stamp(self, name: str) -> tuple[int, ...] | None:
        """Return the length of a file and what else changes with it; None if there is no file."""

    @abstractmethod
    def replace(self, name: str, text: str) -> None:
        """Create a file, or replace the one that exists."""

    @abstractmethod
    def create_if_absent(self, name: str, text: str) -> None:
        """Create a file unless it exists; on object stores the last of two writers wins."""

    @abstractmethod
    def append(self, name: str, line: str) -> None:
        """Add a line to the end of a file, which is created if it does not exist."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file if it exists."""

    @abstractmethod
    def list_folder(self, folder: str) -> list[str]:
        """Return the names of files and folders in a folder; none if it cannot be read."""
