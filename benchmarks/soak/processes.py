"""What runs below a process, and how much memory it has: read from /proc."""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """One that ran a moment ago."""

    pid: int
    parent: int
    command: str
    megabytes: float

    @property
    def kind(self) -> str:
        """driver, executor or python."""
        if "CoarseGrainedExecutorBackend" in self.command:
            return "executor"
        if "java" in self.command.split("\0")[0]:
            return "driver's JVM"
        return "a worker's Python" if "pyspark" in self.command else "driver's Python"


def below(pid: int) -> list[Process]:
    """A process and all that it has started."""
    every = {process.pid: process for process in map(_process, _pids()) if process is not None}
    found = [every[pid]] if pid in every else []
    for process in found:
        found += [child for child in every.values() if child.parent == process.pid]
    return found


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _process(pid: int) -> Process | None:
    with suppress(OSError, IndexError, ValueError):
        folder = Path("/proc", str(pid))
        parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        pages = int((folder / "statm").read_text().split()[1])
        command = (folder / "cmdline").read_text()
        return Process(pid, parent, command, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
    return None
