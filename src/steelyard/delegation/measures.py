"""Load measures, which turn the measurement of a worker into its utilization, mostly 0 to 1."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from steelyard.delegation.signals import Measurement
from steelyard.validation import require_between


class Measure(ABC):
    """A load measure. The paper leaves the choice of the resource to the application."""

    @abstractmethod
    def utilization(self, seen: Measurement, seconds: float) -> float:
        """Return the utilization of a worker with this measurement in a slot of `seconds`."""


@dataclass(frozen=True)
class Work(Measure):
    """Messages divided by capacity: the seconds of work that arrive per second.

    A part of the backlog counts as new arrivals. So a worker that is behind takes less work until
    it has caught up. The backlog adds at most `most_backlog`. Without this limit, a worker would
    give away too many virtual workers to catch up, and ask for them again. The simulations of the
    paper ignore the backlog.

    >>> Work().utilization(Measurement(arrivals=70, backlog=99, service_time=0.1), seconds=10)
    0.79...
    """

    backlog_weight: float = 0.1
    """The part of the backlog that counts as new arrivals."""
    most_backlog: float = 0.2
    """The most that the backlog adds to the utilization."""

    def __post_init__(self) -> None:
        require_between("backlog_weight", self.backlog_weight, least=0, most=1)
        require_between("most_backlog", self.most_backlog, least=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        arrived = seen.arrivals * seen.service_time / seconds
        waiting = self.backlog_weight * seen.backlog * seen.service_time / seconds
        return arrived + min(waiting, self.most_backlog)


@dataclass(frozen=True)
class QueueLength(Measure):
    """Waiting messages, divided by the capacity of the queue: the paper's measure on Storm."""

    capacity: float

    def __post_init__(self) -> None:
        require_between("capacity", self.capacity, above=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.backlog / self.capacity


@dataclass(frozen=True)
class BusyTime(Measure):
    """Seconds spent on messages, divided by the seconds of the slot."""

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.busy / seconds


def fair_busy_time(seen: Iterable[Measurement]) -> float | None:
    """Return the busy time of all workers if load were proportional to speed.

    The speeds come from the measurements. Return None if no worker processed a message.

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
    """Keys, or bytes, in memory, divided by the most that fit."""

    capacity: float

    def __post_init__(self) -> None:
        require_between("capacity", self.capacity, above=0)

    def utilization(self, seen: Measurement, seconds: float) -> float:
        return seen.memory / self.capacity
