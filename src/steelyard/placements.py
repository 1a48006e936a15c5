"""Placements: which Spark task processes which virtual worker of a stream."""

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.delegation import Rules
from steelyard.durations import seconds_of
from steelyard.plans.task_sizes import capacities_of_tasks
from steelyard.validation import require_between, require_whole


@dataclass(frozen=True)
class Pull:
    """Each worker is one or more Spark tasks; a free task slot takes the next task.

    Workers keep no state. Fast machines take more tasks than slow ones, from the first micro-batch
    on. With more tasks per worker, the work is distributed more evenly, and tasks take longer to
    start.

    >>> Pull(tasks_per_worker=0)
    Traceback (most recent call last):
    ...
    ValueError: tasks_per_worker must be a whole number, at least 1, got 0
    """

    tasks_per_worker: int = 1
    """The number of tasks of each worker; each task is smaller than the one before."""

    def __post_init__(self) -> None:
        require_whole("tasks_per_worker", self.tasks_per_worker, least=1)


@dataclass(frozen=True)
class Delegated:
    """The paper's placement: workers keep partial states, and virtual workers move between them.

    Each worker stays on the executor that holds its state. Busy workers give virtual workers to
    idle workers until the load of each worker is proportional to its speed.

    Args:
        virtual_workers: The number of virtual workers of each worker at the start.
        period: The period of the aggregation: a number of micro-batches, or a length of event time
            such as "1 minute", which needs a window. At its end, workers send their partial states
            on and forget them. A longer period delays results by its length.
        capacities: A first estimate of the relative speeds of the workers. The actual speeds are
            learned.
        rules: The rules that decide when a worker is idle or busy, and that pair such workers;
            None: `SteadyRules`, tuned for micro-batches.

    >>> Delegated(period="soon")
    Traceback (most recent call last):
    ...
    ValueError: period must be a length of time such as '30 seconds' or '5 minutes', got 'soon'
    """

    virtual_workers: int = 100
    period: int | str = 1
    capacities: Sequence[float] | None = None
    rules: Rules | None = None

    def __post_init__(self) -> None:
        _require_owners(self.virtual_workers, self.capacities, self.rules)
        if isinstance(self.period, str):
            seconds_of("period", self.period)
        else:
            require_whole("period", self.period, least=1)


@dataclass(frozen=True)
class RealTime:
    """Workers of a query in Spark's real-time mode: every message is processed when it arrives.

    It needs Spark 4.3, a stream from Kafka, and work that consists of Spark's own expressions. The
    query runs all its tasks at once, one task for each worker. Busy workers give virtual workers to
    idle workers, as with `Delegated`; a decision takes effect with the next batch of the query.

    Args:
        virtual_workers: The number of virtual workers of each worker at the start.
        capacities: A first estimate of the relative speeds of the workers. The actual speeds are
            learned.
        rules: The rules that decide when a worker is idle or busy, and that pair such workers;
            None: `SteadyRules`, as with `Delegated`.
        parts: The number of virtual workers that share a key, also one that is not hot. With 2 or
            more, a key that becomes hot suddenly overloads no single worker until the next batch.
            Partial results of a key then are at several workers.

    >>> RealTime(virtual_workers=0)
    Traceback (most recent call last):
    ...
    ValueError: virtual_workers must be a whole number, at least 1, got 0
    """

    virtual_workers: int = 100
    capacities: Sequence[float] | None = None
    rules: Rules | None = None
    parts: int = 1

    def __post_init__(self) -> None:
        _require_owners(self.virtual_workers, self.capacities, self.rules)
        require_whole("parts", self.parts, least=1)


def _require_owners(
    virtual_workers: int, capacities: Sequence[float] | None, rules: object
) -> None:
    """Refuse bad settings of workers that own virtual workers."""
    require_whole("virtual_workers", virtual_workers, least=1)
    for capacity in () if capacities is None else capacities:
        require_between("capacities", capacity, above=0)
    if rules is not None and not isinstance(rules, Rules):
        raise TypeError(f"rules must be SteadyRules(), PaperRules() or your own, got {rules!r}")


Placement = Pull | Delegated | RealTime


@dataclass(frozen=True)
class StreamWorkers:
    """The number and the placement of a stream's workers.

    >>> StreamWorkers(4, Pull(tasks_per_worker=3)).bins
    12
    >>> delegated = StreamWorkers(4, Delegated())
    >>> delegated.bins, delegated.virtual
    (4, 400)
    >>> StreamWorkers(4, "pull")
    Traceback (most recent call last):
    ...
    TypeError: placement must be sy.Pull(), sy.Delegated() or sy.RealTime(), got 'pull'
    """

    count: int
    placement: Placement

    def __post_init__(self) -> None:
        require_whole("workers", self.count, least=1)
        if not isinstance(self.placement, Placement):
            raise TypeError(
                "placement must be sy.Pull(), sy.Delegated() or sy.RealTime(), got "
                f"{self.placement!r}"
            )
        estimate = self.capacities
        if estimate is not None and len(estimate) != self.count:
            raise ValueError(
                f"capacities must be one number for each of {self.count} workers, "
                f"got {len(estimate)}"
            )

    @property
    def are_delegated(self) -> bool:
        """Whether workers keep state and stay on the executor that holds it."""
        return isinstance(self.placement, Delegated)

    @property
    def own_virtual_workers(self) -> bool:
        """Whether virtual workers move between workers."""
        return not isinstance(self.placement, Pull)

    @property
    def capacities(self) -> Sequence[float] | None:
        """The user's estimate of the relative speeds of the workers; None if there is none."""
        return None if isinstance(self.placement, Pull) else self.placement.capacities

    @property
    def rules(self) -> Rules | None:
        """The delegation rules that the user chose; None for the default rules."""
        return None if isinstance(self.placement, Pull) else self.placement.rules

    @property
    def each(self) -> int:
        """The number of virtual workers of each worker at the start.

        Without delegation, each virtual worker is a task.
        """
        if isinstance(self.placement, Pull):
            return self.placement.tasks_per_worker
        return self.placement.virtual_workers

    @property
    def virtual(self) -> int:
        """The number of virtual workers of all workers."""
        return self.count * self.each

    @property
    def bins(self) -> int:
        """The number of bins that rows are sent to: delegated workers, or tasks."""
        return self.count if self.own_virtual_workers else self.virtual

    @property
    def task_sizes(self) -> list[float] | None:
        """The relative size of each task; None if all bins have the same size."""
        return None if self.own_virtual_workers else capacities_of_tasks(self.count, self.each)
