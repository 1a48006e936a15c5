"""Files on a store that `pyarrow.fs` can open: S3, Google's and Azure's stores, HDFS."""

import uuid
from contextlib import suppress

from pyarrow.fs import FileSelector, FileSystem, FileType

from steelyard.control.files import Files

_SYSTEMS_WITH_FOLDERS = ("hdfs", "local")
"""The file systems on which a file needs a folder and can be read while it is written. Object
stores show only complete objects."""


class RemoteFiles(Files):
    """A remote folder; `pyarrow.fs` finds the credentials."""

    appends_in_place = False
    costs_per_request = True

    def __init__(self, address: str) -> None:
        self.address = address
        self._system, path = FileSystem.from_uri(address)
        self._path = path.rstrip("/")

    @property
    def local_path(self) -> None:
        return None

    def prepare(self) -> None:
        probe = f".{uuid.uuid4().hex}"
        self.replace(probe, "")
        self.delete(probe)

    def exists(self, name: str = "") -> bool:
        info = self._system.get_file_info(f"{self._path}/{name}".rstrip("/"))
        return bool(info.type != FileType.NotFound)

    def read_text(self, name: str) -> str:
        with self._system.open_input_stream(f"{self._path}/{name}") as file:
            return bytes(file.read()).decode()

    def read_bytes(self, name: str, begin: int = 0) -> bytes:
        with self._system.open_input_file(f"{self._path}/{name}") as file:
            file.seek(min(begin, file.size()))
            return bytes(file.read())

    def stamp(self, name: str) -> tuple[int, ...] | None:
        info = self._system.get_file_info(f"{self._path}/{name}")
        return (info.size, info.mtime_ns or 0) if info.is_file else None

    def replace(self, name: str, text: str) -> None:
        path = f"{self._path}/{name}"
        if self._system.type_name not in _SYSTEMS_WITH_FOLDERS:
            self._write(path, text)
            return
        folder = path.rpartition("/")[0]
        self._system.create_dir(folder, recursive=True)
        written = f"{folder}/.{uuid.uuid4().hex}"
        self._write(written, text)
        self.delete(name)  # on HDFS, a move cannot replace an existing file
        self._system.move(written, path)

    def _write(self, path: str, text: str) -> None:
        with self._system.open_output_stream(path) as file:
            file.write(text.encode())

    def create_if_absent(self, name: str, text: str) -> None:
        if not self.exists(name):
            self.replace(name, text)

    def append(self, name: str, line: str) -> None:
        before = self.read_text(name) if self.exists(name) else ""
        self.replace(name, f"{before}{line}\n")

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._system.delete_file(f"{self._path}/{name}")

    def list_folder(self, folder: str) -> list[str]:
        found = FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        with suppress(OSError):
            return [info.base_name for info in self._system.get_file_info(found)]
        return []
