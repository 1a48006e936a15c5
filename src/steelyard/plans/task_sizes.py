"""Tasks that anybody may take: large ones first, small ones last.

A number of workers and of tasks for each enter; what each task should hold leaves.
"""

from collections.abc import Sequence

import numpy as np

SHRINKING = 0.75
"""Of a task of one round, a task of the next: the fewer are left, the finer they even out."""


def capacities_of_tasks(
    workers: int, tasks: int, capacities: Sequence[float] | None = None
) -> list[float] | None:
    """What each of `workers * tasks` bins should hold, round by round; None: all the same.

    Spark starts tasks in their order, so that whoever is free late finds small ones: nobody waits
    long for the last. Bin `round * workers + worker` is the worker's task of that round.

    >>> capacities_of_tasks(workers=2, tasks=3)
    [1.0, 1.0, 0.75, 0.75, 0.5625, 0.5625]
    >>> capacities_of_tasks(workers=2, tasks=2, capacities=[3, 1])
    [3.0, 1.0, 2.25, 0.75]
    """
    if tasks == 1:
        return None if capacities is None else list(capacities)
    own = np.ones(workers) if capacities is None else np.asarray(capacities, float)
    return np.outer(SHRINKING ** np.arange(tasks), own).ravel().tolist()
