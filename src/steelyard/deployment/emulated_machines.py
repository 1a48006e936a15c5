"""Machines of unequal speed on one computer: a task sleeps for the time that its machine takes.

A worker's messages enter; time passes, as much as the worker's machine would take for them.
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
"""Seconds: shorter sleeps take longer than they should."""


class MachineOfTask(ABC):
    """Finds the machine that a task runs on."""

    @abstractmethod
    def number(self) -> int:
        """Return the number of the machine."""


@dataclass(frozen=True)
class ByPartition(MachineOfTask):
    """Every worker has a machine of its own: its partition is always there."""

    def number(self) -> int:
        from steelyard.executor.task_context import partition

        return partition()


@dataclass(frozen=True)
class ByProcess(MachineOfTask):
    """A machine is a process of Spark's: any task may run there. They are numbered in a folder."""

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
                # Its process is gone: the last who takes its place has it.
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
    """How fast they are, one number each; a speed of 1 takes `service` seconds for a message.

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
    """Of all this, what they can do if somebody pauses them."""
    may_be_paused: bool = False
    """Whether the time of a pause does not count as work."""

    @property
    def limit(self) -> float:
        """Messages a second that all together can do."""
        return self.part * sum(self.speeds) / self.service

    def seconds(self, messages: int, machine: int) -> float:
        """How long a machine takes for some messages."""
        return messages * self.service / self.speeds[machine % len(self.speeds)]

    def work(self, messages: int, since: float) -> None:
        """Take the time that these messages take here, from a moment of `perf_counter` on."""
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
    """A count that takes as long as its machine does."""

    def __init__(self, machines: Machines) -> None:
        super().__init__()
        self.machines = machines

    def add(self, batch: pa.RecordBatch, groups: Groups) -> States:
        begin = time.perf_counter()
        states = super().add(batch, groups)
        self.machines.work(batch.num_rows, begin)
        return states
