"""Load measures: how a worker's measurement becomes its utilization, a number around 0 to 1."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from steelyard.delegation.signals import Measurement
from steelyard.validation import require_between


class Measure(ABC):
    """Which resource a worker watches; the paper leaves the choice to the application."""

    @abstractmethod
    def utilization(self, seen: Measurement, seconds: float) -> float:
        """The utilization of a worker that saw this in a slot of so many seconds."""


@dataclass(frozen=True)
class Work(Measure):
    """Messages against capacity: the seconds of work that a slot brought, per second.

    A part of the backlog counts as if it had arrived now, so that a worker that fell behind asks
    for less until it has caught up; but it adds `most_backlog` at most, or a worker would give
    away all that it has to catch up sooner, only to ask for it again. The paper's simulations
    leave the backlog out.

    >>> Work().utilization(Measurement(arrivals=70, backlog=99, service_time=0.1), seconds=10)
    0.79...
    """

    backlog_weight: float = 0.1
    most_backlog: float = 0.2

    def __post_init__(self) -> None:
        require_between("backlog_weight", self.backlog_weight, least=0, most=1)
        require_between("most_backlog", self.most_backlog, least=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        arrived = seen.arrivals * seen.service_time / seconds
        waiting = self.backlog_weight * seen.backlog * seen.service_time / seconds
        return arrived + min(waiting, self.most_backlog)


@dataclass(frozen=True)
class QueueLength(Measure):
    """Messages that wait, against the most that may: the paper's measure on Storm."""

    capacity: float

    def __post_init__(self) -> None:
        require_between("capacity", self.capacity, above=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.backlog / self.capacity


@dataclass(frozen=True)
class BusyTime(Measure):
    """The part of the slot that was spent on messages."""

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.busy / seconds


def fair_busy_time(seen: Iterable[Measurement]) -> float | None:
    """The busy time that all workers would have had, had each got messages as it is fast.

    Speeds are learned from what the workers did in the slot; None if nobody did anything.

    >>> fast, slow = Measurement(arrivals=60, busy=3.0), Measurement(arrivals=60, busy=6.0)
    >>> fair_busy_time([fast, slow])
    4.0
    """
    working = [worker for worker in seen if worker.busy > 0 and worker.arrivals > 0]
    if not working:
        return None
    messages_per_second = sum(worker.arrivals / worker.busy for worker in working)
    return sum(worker.arrivals for worker in working) / messages_per_second


@dataclass(frozen=True)
class Memory(Measure):
    """Keys, or bytes, held, against the most that fit."""

    capacity: float

    def __post_init__(self) -> None:
        require_between("capacity", self.capacity, above=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.memory / self.capacity
