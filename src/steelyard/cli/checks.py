"""Check options before any work starts; each function refuses a bad value with one sentence."""

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from steelyard.validation import require_whole

_SERVER = re.compile(r"(?:[\w.%-]*://)?(?:[\w.%-]+|\[[0-9a-fA-F:.%]+\]):([0-9]{1,5})", re.ASCII)
"""A Kafka server, in the format of Kafka's clients."""

_SPARK_RESOLVES = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|.*[*?\[{]")
"""An address of another file system, or a pattern, which Spark resolves."""


def require_port(name: str, port: int) -> None:
    """Refuse a number that is not a port; 0 stands for any free port."""
    require_whole(name, port, least=0, most=65_535)


def require_free_port(name: str, port: int) -> None:
    """Refuse a port of this machine that another program uses."""
    require_port(name, port)
    try:
        with socket.create_server(("127.0.0.1", port)):
            pass
    except OSError as error:
        raise ValueError(
            f"{name}: port {port} cannot be used ({error.strerror}); name another one, or 0 for "
            "any free port"
        ) from error


def is_local(path: str) -> bool:
    """Whether a path is one of this machine, and not an address of another file system."""
    return not _SPARK_RESOLVES.match(path)


def require_servers(name: str, servers: str | None) -> None:
    """Refuse Kafka servers without a host and a port.

    >>> require_servers("servers", "one:9092,two:9092")
    >>> require_servers("servers", "one")
    Traceback (most recent call last):
    ...
    ValueError: servers must be host:port, separated by commas; got 'one'
    """
    for server in [] if servers is None else servers.split(","):
        found = _SERVER.fullmatch(server.strip())
        if found is None or not 0 < int(found[1]) <= 65_535:
            raise ValueError(f"{name} must be host:port, separated by commas; got {servers!r}")


def require_jars(jars: str | None) -> None:
    """Refuse local jars that do not exist, because Spark would start without them."""
    for jar in [] if jars is None else jars.split(","):
        if not _SPARK_RESOLVES.match(jar) and not Path(jar.strip()).is_file():
            raise ValueError(f"jars: the file {jar.strip()!r} does not exist")


def require_folder_for(name: str, file: Path | None) -> None:
    """Refuse to write a file into a folder that does not exist."""
    if file is not None and not file.absolute().parent.is_dir():
        raise ValueError(f"{name}: the folder of {str(file)!r} does not exist")
    if file is not None and file.is_dir():
        raise ValueError(f"{name} must be a file, but {str(file)!r} is a folder")
    require_writable(name, file)


def require_new(name: str, folder: Path) -> None:
    """Refuse a file or a folder that exists."""
    if folder.exists():
        raise ValueError(f"{name}: {str(folder)!r} exists already; name another folder")


def require_writable(name: str, target: Path | None) -> None:
    """Refuse a file that cannot be written, or a folder in which no file can be created.

    The folder of a new file or folder may be missing if the command creates it; the nearest folder
    that exists is then tried.
    """
    if target is None:
        return
    tried = target.absolute()
    if not tried.is_file():
        folder = tried if tried.is_dir() else tried.parent
        while not folder.exists():
            folder = folder.parent
        tried = folder
    try:
        if tried.is_dir():
            with TemporaryFile(dir=tried):
                pass
        else:
            with tried.open("ab"):
                pass
    except OSError as error:
        raise ValueError(
            f"{name}: {str(target)!r} cannot be written: {error.strerror or error}"
        ) from error


def require_no_file(name: str, folder: str | Path | None) -> None:
    """Refuse a local file if a folder is needed."""
    if folder is not None and Path(folder).is_file():
        raise ValueError(f"{name} must be a folder, but {str(folder)!r} is a file")


def require_kind(options: Mapping[str, Any], name: str, chosen: str, *kinds: str) -> None:
    """Refuse an option that has no effect for the chosen kind of input or output."""
    if options[name] is not None and options[chosen] not in kinds:
        dashed = name.replace("_", "-")
        allowed = " or ".join(kinds)
        raise ValueError(
            f"--{dashed} works only with --{chosen} {allowed}, not with {options[chosen]}"
        )


def require_files(name: str, path: str, *, needs_content: bool) -> None:
    """Refuse a local path without files; patterns and other addresses are left to Spark."""
    if not Path(path).exists():
        if _SPARK_RESOLVES.match(path):
            return
        raise ValueError(f"{name}: there is no file or folder {path!r}")
    if needs_content and not _has_data(Path(path)):
        raise ValueError(f"{name}: {path!r} has no files, so its columns are unknown")


def _has_data(path: Path) -> bool:
    """Return whether Spark would read a file; it ignores names that begin with . or _."""
    inside = path.rglob("*") if path.is_dir() else [path]
    return any(file.is_file() and not file.name.startswith((".", "_")) for file in inside)
