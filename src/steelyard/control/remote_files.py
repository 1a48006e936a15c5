"""Files on a store that `pyarrow.fs` reaches: S3, Google's and Azure's stores, HDFS."""

import uuid
from contextlib import suppress

from pyarrow.fs import FileSelector, FileSystem, FileType

from steelyard.control.files import Files


class RemoteFiles(Files):
    """An address; credentials are found as `pyarrow.fs` finds them."""

    appends = False
    costs_per_request = True

    def __init__(self, address: str) -> None:
        self.address = address
        self._system, self._path = FileSystem.from_uri(address)
        self._path = self._path.rstrip("/")

    def prepare(self) -> None:
        probe = f".{uuid.uuid4().hex}"
        self.write(probe, "")
        self.remove(probe)

    def exists(self, name: str = "") -> bool:
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
        self.remove(name)  # HDFS does not replace a file by moving another one onto it
        self._system.move(written, path)

    def create(self, name: str, text: str) -> None:
        if not self.exists(name):
            self.write(name, text)

    def append(self, name: str, line: str) -> None:
        raise NotImplementedError(f"nothing can be added to a file on {self.shown}")

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._system.delete_file(f"{self._path}/{name}")

    def names(self, folder: str) -> list[str]:
        found = FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        with suppress(OSError):
            return [info.base_name for info in self._system.get_file_info(found)]
        return []
