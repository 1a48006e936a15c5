"""The interface to small text files in a folder that the driver and executors share.

Names and texts enter; texts leave. `steelyard.control.addresses` opens the implementations.
"""

from abc import ABC, abstractmethod
from pathlib import Path

from steelyard.control.redaction import without_secrets


class Files(ABC):
    """Small text files whose names may hold slashes. A reader never sees a partial text.

    Every method raises an OSError if the file system fails. A folder is created with the first file
    in it.
    """

    address: str
    """The address of the folder; `files_at` opens the same folder with it in another process."""
    appends_in_place: bool
    """Whether `append` writes only the new line, instead of the whole file again."""
    costs_per_request: bool
    """Whether the storage service charges for each request, so that readers should send few."""

    @property
    def shown(self) -> str:
        """The address without secrets, to be shown in messages."""
        return without_secrets(self.address)

    @property
    @abstractmethod
    def local_path(self) -> Path | None:
        """The path of the folder on this machine; None if it is remote."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the folder; raise an OSError if files in it cannot be written."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Return whether the file exists; without a name, whether the folder does."""

    def read_text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            OSError: The file does not exist.
            ValueError: The file is not UTF-8.
        """
        return self.read_bytes(name).decode()

    @abstractmethod
    def read_bytes(self, name: str, begin: int = 0) -> bytes:
        """Return the bytes of a file from position `begin` on; b"" if the file is shorter."""

    @abstractmethod
    def stamp(self, name: str) -> tuple[int, ...] | None:
        """Return numbers that change when the file changes, its length first; None if absent."""

    @abstractmethod
    def replace(self, name: str, text: str) -> None:
        """Create a file, or replace an existing file."""

    @abstractmethod
    def create_if_absent(self, name: str, text: str) -> None:
        """Create a file unless it exists.

        On object stores, if two processes create a file at the same time, the last one wins.
        """

    @abstractmethod
    def append(self, name: str, line: str) -> None:
        """Add a line to the end of a file; create the file if it does not exist."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file if it exists."""

    @abstractmethod
    def list_folder(self, folder: str) -> list[str]:
        """Return the names of the files and folders in a folder; [] if it cannot be read."""
