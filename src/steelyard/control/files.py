"""The file systems that a control path can be on.

A path or an address enters; a place for small texts leaves. A folder on a local disk or a shared
mount is `LocalFiles`; what `pyarrow.fs` reaches (S3, Google's and Azure's stores, HDFS) is
`RemoteFiles`.
"""

import os
import re
from abc import ABC, abstractmethod
from pathlib import Path
from urllib.parse import unquote, urlsplit

REMOTE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""Schemes of addresses that `pyarrow.fs` opens."""


class Files(ABC):
    """Small texts under names with slashes. A reader never sees part of a text.

    Every method raises an OSError if the file system fails.
    """

    address: str
    """Where the files are; `files_at` opens the same place with it in another process."""
    appends: bool
    """Whether a line can be added to a file without writing the whole file again."""
    costs_per_request: bool
    """Whether every request is paid for, so that readers should not ask too often."""

    @property
    def shown(self) -> str:
        """The address without secrets, for messages."""
        return without_secrets(self.address)

    @abstractmethod
    def prepare(self) -> None:
        """Create the folder, and raise an OSError if it cannot be written."""

    @abstractmethod
    def exists(self, name: str = "") -> bool:
        """Return whether the file exists; without a name, whether the folder does."""

    @abstractmethod
    def read(self, name: str) -> str:
        """Return a text; raise an OSError if there is none, a ValueError if it is not UTF-8."""

    @abstractmethod
    def read_from(self, name: str, begin: int) -> bytes:
        """Return the bytes of a file from position `begin` on."""

    @abstractmethod
    def stamp(self, name: str) -> tuple[int, ...] | None:
        """Return the length of a file and what else changes with it; None if there is no file."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """Create or replace a file."""

    @abstractmethod
    def create(self, name: str, text: str) -> None:
        """Create a file unless it exists; on object stores the last of two writers wins."""

    @abstractmethod
    def append(self, name: str, line: str) -> None:
        """Add a line to a file; only where `appends` is true."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file if it exists."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """List the files and folders in a folder; an empty list if it cannot be read."""


def files_at(path: str | os.PathLike[str]) -> Files:
    """Open a path, a file: address, or an address that `pyarrow.fs` opens."""
    from steelyard.control.local_files import LocalFiles

    path = os.fspath(path)
    try:
        address = urlsplit(path)
    except ValueError as error:
        reason = _without_secrets_of(path, str(error))
        raise ValueError(f"control: {without_secrets(path)!r} is no address: {reason}") from None
    scheme = address.scheme
    if not scheme:
        return LocalFiles(Path(path).absolute())
    if scheme == "file" and address.netloc in ("", "localhost"):
        return LocalFiles(Path(unquote(address.path)))
    if scheme in REMOTE:
        from steelyard.control.remote_files import RemoteFiles

        try:
            return RemoteFiles(path)
        except (OSError, ValueError, NotImplementedError) as error:
            reason = _without_secrets_of(path, str(error))
        # Outside the handler: the original error may quote the address with its secrets.
        raise ValueError(f"control: {without_secrets(path)!r} cannot be reached: {reason}")
    remote = ", ".join(f"{scheme}://" for scheme in REMOTE)
    raise ValueError(
        f"control: {without_secrets(path)!r} must be a folder on a local disk or a shared mount "
        f"(a plain path or file:/...), or on one of {remote}"
    )


def without_secrets(address: str) -> str:
    """Return an address without its user, password and options.

    Secrets may hold slashes: if anything before the path can be a user and a password, all up to
    the last @ is left out, even if that leaves out part of the path.

    >>> without_secrets("s3://me:secret@bucket/control?region=eu")
    's3://bucket/control'
    >>> without_secrets("s3://me:sec/ret@bucket/control")
    's3://bucket/control'
    >>> without_secrets("s3://bucket/by@hour")
    's3://bucket/by@hour'
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    rest = re.split(r"[?#]", rest.rpartition("@")[2] if _secrets_of(address) else rest)[0]
    return f"{scheme}://{rest}"


def _secrets_of(address: str) -> list[str]:
    """The user, the password and the values of options in an address."""
    rest = address.partition("://")[2]
    before, at, behind = rest.rpartition("@")
    may_be_user = bool(at) and (":" in before or "/" not in before)
    options = re.split(r"[?&#]", behind if may_be_user else rest)[1:]
    values = [option.partition("=")[2] for option in options]
    return ([*before.split(":"), before] if may_be_user else []) + values


def _without_secrets_of(address: str, message: str) -> str:
    """A message that may quote an address, or parts of it, without the secrets of the address."""
    message = message.replace(address, without_secrets(address))
    for secret in sorted(filter(None, _secrets_of(address)), key=len, reverse=True):
        message = message.replace(secret, "***").replace(unquote(secret), "***")
    return message
