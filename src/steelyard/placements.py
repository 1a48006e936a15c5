"""Where the workers of a stream run: which Spark task processes which virtual worker."""

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
    on. More tasks per worker distribute the work more evenly and take longer to start.

    >>> Pull(tasks_per_worker=0)
    Traceback (most recent call last):
    ...
    ValueError: tasks_per_worker must be a whole number, at least 1, got 0
    """

    tasks_per_worker: int = 1
    """Tasks of one worker; each is smaller than the one before."""

    def __post_init__(self) -> None:
        require_whole("tasks_per_worker", self.tasks_per_worker, least=1)


@dataclass(frozen=True)
class Delegated:
    """The paper's placement: workers keep partial states, and virtual workers move between them.

    Each worker stays on the executor that holds its state. Busy workers give virtual workers to
    idle ones until the load of each is in proportion to its speed.

    >>> Delegated(period="soon")
    Traceback (most recent call last):
    ...
    ValueError: period must be a length of time such as '30 seconds' or '5 minutes', got 'soon'
    """

    virtual_workers: int = 100
    """Virtual workers of each worker at the start."""
    period: int | str = 1
    """Workers send their partial results on, and forget them, after this many micro-batches, or
    after this much event time, such as "1 minute", which needs a window. Results arrive that much
    later."""
    capacities: Sequence[float] | None = None
    """A first guess of the workers' relative speeds; they are learned in any case."""
    rules: Rules | None = None
    """When a worker is idle or busy, and how these are paired; None: `SteadyRules`, tuned for
    micro-batches."""

    def __post_init__(self) -> None:
        require_whole("virtual_workers", self.virtual_workers, least=1)
        if isinstance(self.period, str):
            seconds_of("period", self.period)
        else:
            require_whole("period", self.period, least=1)
        for capacity in () if self.capacities is None else self.capacities:
            require_between("capacities", capacity, above=0)
        if self.rules is not None and not isinstance(self.rules, Rules):
            raise TypeError(
                f"rules must be SteadyRules(), PaperRules() or your own, got {self.rules!r}"
            )


Placement = Pull | Delegated


@dataclass(frozen=True)
class StreamWorkers:
    """The workers of a stream: how many virtual workers they have, and where rows are sent.

    >>> StreamWorkers(4, Pull(tasks_per_worker=3)).bins
    12
    >>> delegated = StreamWorkers(4, Delegated())
    >>> delegated.bins, delegated.virtual
    (4, 400)
    >>> StreamWorkers(4, "pull")
    Traceback (most recent call last):
    ...
    TypeError: placement must be sy.Pull() or sy.Delegated(), got 'pull'
    """

    count: int
    placement: Placement

    def __post_init__(self) -> None:
        require_whole("workers", self.count, least=1)
        if not isinstance(self.placement, Placement):
            raise TypeError(
                f"placement must be sy.Pull() or sy.Delegated(), got {self.placement!r}"
            )
        hint = self.capacities
        if hint is not None and len(hint) != self.count:
            raise ValueError(
                f"capacities must be one number for each of {self.count} workers, got {len(hint)}"
            )

    @property
    def are_delegated(self) -> bool:
        """Whether workers keep state and stay where it is."""
        return isinstance(self.placement, Delegated)

    @property
    def capacities(self) -> Sequence[float] | None:
        """A first guess of the workers' speeds."""
        return self.placement.capacities if isinstance(self.placement, Delegated) else None

    @property
    def rules(self) -> Rules | None:
        """The rules of the delegation, if the user chose some."""
        return self.placement.rules if isinstance(self.placement, Delegated) else None

    @property
    def each(self) -> int:
        """Virtual workers of each worker at the start; without delegation they are tasks."""
        if isinstance(self.placement, Delegated):
            return self.placement.virtual_workers
        return self.placement.tasks_per_worker

    @property
    def virtual(self) -> int:
        """All virtual workers."""
        return self.count * self.each

    @property
    def bins(self) -> int:
        """Where rows are sent: to workers that stay, or to tasks."""
        return self.count if self.are_delegated else self.virtual

    @property
    def task_sizes(self) -> list[float] | None:
        """What each task should hold; None: the same."""
        return None if self.are_delegated else capacities_of_tasks(self.count, self.each)
