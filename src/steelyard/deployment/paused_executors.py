"""Slow down Spark executors by pausing their processes periodically, as `cpulimit` does."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

_CYCLE = 0.5
"""Seconds of a cycle: longer than a worker's sleeps, shorter than Spark's heartbeats."""


def executors_of(spark: SparkSession) -> list[int]:
    """Return the process ids of the executors that this driver started on this machine."""
    context = spark.sparkContext
    jvm = context._jvm
    assert jvm is not None
    driver = int(jvm.java.lang.ProcessHandle.current().pid())
    return [pid for pid in _children(driver) if b"ExecutorBackend" in _command(pid)]


@contextmanager
def slowed(processes: Sequence[int], speed: float) -> Iterator[None]:
    """Let processes and their descendants run only for a fraction `speed` of the time."""
    is_over = threading.Event()
    arguments = (processes, speed, is_over.wait)
    thread = threading.Thread(target=pause_in_turns, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def pause_in_turns(processes: Sequence[int], speed: float, wait: Callable[[float], bool]) -> None:
    """Let processes run and pause them in turn, until `wait` returns true.

    `wait` gets the seconds to wait. All processes run when this function ends, also after an
    exception.
    """
    try:
        while not wait(_CYCLE * speed):
            _signal(processes, signal.SIGSTOP)
            wait(_CYCLE * (1 - speed))
            _signal(processes, signal.SIGCONT)
    finally:
        _signal(processes, signal.SIGCONT)


def _signal(roots: Sequence[int], what: signal.Signals) -> None:
    for root in roots:
        for pid in _tree(root):
            with suppress(ProcessLookupError):
                os.kill(pid, what)


def _tree(root: int) -> list[int]:
    found = [root]
    for pid in found:  # the list grows during the loop
        found += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return children


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
