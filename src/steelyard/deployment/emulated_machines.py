"""Emulate machines of unequal speed on one computer.

A task sleeps for as long as its machine would need for the task's messages.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from steelyard.aggregators import Count, Groups
from steelyard.aggregators.base import States

_QUANTUM = 0.005
"""Length of a sleep in seconds; shorter sleeps are inaccurate."""


class MachineOfTask(ABC):
    """Finds the machine that a task runs on."""

    @abstractmethod
    def number(self) -> int:
        """Return the number of the machine."""


@dataclass(frozen=True)
class ByPartition(MachineOfTask):
    """Every worker has its own machine: the machine number is the partition of the task."""

    def number(self) -> int:
        from steelyard.executor.task_context import partition

        return partition()


@dataclass(frozen=True)
class ByProcess(MachineOfTask):
    """Every Python process stands for a machine, which may run tasks of any worker.

    Processes get their numbers from symbolic links in a folder.
    """

    folder: str

    def number(self) -> int:
        me = f"{os.getpid()}"
        taken = 0
        while True:
            place = Path(self.folder, str(taken))
            with suppress(FileExistsError):
                place.symlink_to(me)
            owner = str(place.readlink())
            if owner != me and not Path(f"/proc/{owner}").exists():
                # The process has ended: the last process that replaces its link gets the number.
                mine = Path(self.folder, f".{me}")
                mine.symlink_to(me)
                mine.replace(place)
                time.sleep(_QUANTUM)
                owner = str(place.readlink())
            if owner == me:
                return taken
            taken += 1


@dataclass(frozen=True)
class Machines:
    """The speeds of some machines; a machine of speed 1 needs `service` seconds for a message.

    >>> machines = Machines(service=0.01, speeds=(1, 1, 0.5))
    >>> machines.limit
    250.0
    >>> machines.seconds(10, machine=2)
    0.2
    """

    service: float
    speeds: Sequence[float]
    machine_of_task: MachineOfTask = ByPartition()
    part: float = 1.0
    """Fraction of the time in which the machines are not paused, on average."""
    may_be_paused: bool = False
    """Whether processes may be paused; a pause then does not count as work."""

    @property
    def limit(self) -> float:
        """Total capacity of all machines, in messages per second."""
        return self.part * sum(self.speeds) / self.service

    def seconds(self, messages: int, machine: int) -> float:
        """Return the time that a machine needs for some messages."""
        return messages * self.service / self.speeds[machine % len(self.speeds)]

    def work(self, messages: int, since: float) -> None:
        """Sleep until the messages are processed, counted from `since` on `perf_counter`."""
        seconds = self.seconds(messages, self.machine_of_task.number())
        left = since + seconds - time.perf_counter()
        while left > 0:
            begin = time.perf_counter()
            time.sleep(min(left, _QUANTUM))
            if self.may_be_paused:
                left -= min(time.perf_counter() - begin, 2 * _QUANTUM)
            else:
                left = since + seconds - time.perf_counter()


@dataclass(frozen=True)
class ChangingMachines(Machines):
    """Machines whose speeds change at a micro-batch."""

    later: Sequence[float] = ()
    change: int = 0

    def seconds(self, messages: int, machine: int) -> float:
        from steelyard.executor.task_context import micro_batch

        has_changed = micro_batch().batch >= self.change
        speeds = self.later if has_changed else self.speeds
        return messages * self.service / speeds[machine % len(speeds)]


class SlowCount(Count):
    """A count that takes the time of its emulated machine."""

    def __init__(self, machines: Machines) -> None:
        super().__init__()
        self.machines = machines

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        begin = time.perf_counter()
        states = super().add(batch, groups)
        self.machines.work(batch.num_rows, begin)
        return states
