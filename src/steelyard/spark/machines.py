"""Machines of unequal speed, of which two cores can show many: whoever works for them sleeps.

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


class Place(ABC):
    """Tells which machine a task runs on."""

    @abstractmethod
    def number(self) -> int:
        """That of the machine."""


@dataclass(frozen=True)
class ByPartition(Place):
    """Every worker has a machine of its own: its partition is always there."""

    def number(self) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return context.partitionId()


@dataclass(frozen=True)
class ByProcess(Place):
    """A machine is a process of Spark's: any task may run there. They are numbered in a folder."""

    folder: str

    def number(self) -> int:
        me = f"{os.getpid()}"
        taken = 0
        while True:
            place = Path(self.folder, str(taken))
            with suppress(FileExistsError):
                place.symlink_to(me)
            if str(place.readlink()) == me:
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
    place: Place = ByPartition()

    @property
    def limit(self) -> float:
        """Messages a second that all together can do."""
        return sum(self.speeds) / self.service

    def seconds(self, messages: int, machine: int) -> float:
        """How long a machine takes for some messages."""
        return messages * self.service / self.speeds[machine % len(self.speeds)]

    def work(self, messages: int, since: float) -> None:
        """Take the time that these messages take here, from a moment of `perf_counter` on."""
        end = since + self.seconds(messages, self.place.number())
        while (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, _QUANTUM))


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
