"""The processes of a stream and the resources that they use, read from /proc."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KINDS = ("driver's Python", "driver's JVM", "executor", "workers' Python")


@dataclass(frozen=True)
class Usage:
    """The resources that one process, or several together, use at one moment."""

    megabytes: float = 0.0
    sockets: int = 0
    files: int = 0
    """Descriptors that are not sockets."""
    threads: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.megabytes + other.megabytes,
            self.sockets + other.sockets,
            self.files + other.files,
            self.threads + other.threads,
        )


@dataclass(frozen=True)
class Process:
    """A process, as it was at one moment."""

    pid: int
    parent: int
    command: str
    usage: Usage

    @property
    def kind(self) -> str | None:
        """One of `KINDS`; None for other programs, such as the shell commands that Spark runs."""
        program = Path(self.command.split("\0")[0]).name
        if program == "java":
            is_executor = "CoarseGrainedExecutorBackend" in self.command
            return "executor" if is_executor else "driver's JVM"
        if "pyspark" in self.command:
            return "workers' Python"
        return "driver's Python" if "benchmarks.soak.job" in self.command else None


def below(pid: int) -> list[Process]:
    """Return a process and all processes that it has started."""
    parents = {other: parent for other in _pids() if (parent := _parent(other)) is not None}
    found = [pid] if pid in parents else []
    for known in found:
        found += [other for other, parent in parents.items() if parent == known]
    read = [_process(other, parents[other]) for other in found]
    processes = {process.pid: process for process in read if process is not None}
    return [process for process in processes.values() if not _is_forked(process, processes)]


def _is_forked(process: Process, others: dict[int, Process]) -> bool:
    """Whether this is a copy of a JVM that will start another program and has all files open."""
    is_java = process.kind in ("driver's JVM", "executor")
    parent = others.get(process.parent)
    return is_java and parent is not None and parent.command == process.command


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _parent(pid: int) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    return None


def _process(pid: int, parent: int) -> Process | None:
    with suppress(OSError, IndexError, ValueError):
        folder = Path("/proc", str(pid))
        pages = int((folder / "statm").read_text().split()[1])
        open_files = list(map(_target, (folder / "fd").iterdir()))
        sockets = sum(target.startswith("socket:") for target in open_files)
        usage = Usage(
            megabytes=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            sockets=sockets,
            files=len(open_files) - sockets,
            threads=len(list((folder / "task").iterdir())),
        )
        return Process(pid, parent, (folder / "cmdline").read_text(), usage)
    return None


def _target(descriptor: Path) -> str:
    with suppress(FileNotFoundError):  # closed in the meantime
        return str(descriptor.readlink())
    return ""
