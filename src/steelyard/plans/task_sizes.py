"""Sizes of tasks that run in any free task slot: large tasks first, small tasks last.

The number of workers and of tasks per worker enter; the relative size of each task leaves.
"""

from collections.abc import Sequence

import numpy as np

SHRINKING = 0.75
"""The size of a worker's task relative to the task before it. Small last tasks let task slots
finish at nearly the same time."""


def capacities_of_tasks(
    workers: int, tasks: int, capacities: Sequence[float] | None = None
) -> list[float] | None:
    """Return the relative sizes of `workers * tasks` bins; None means equal sizes.

    Bin `number * workers + worker` is task `number` of the worker. Spark starts tasks in the order
    of their bins, so the last tasks to start are small, and no task slot waits long for the end
    of a stage.

    >>> capacities_of_tasks(workers=2, tasks=3)
    [1.0, 1.0, 0.75, 0.75, 0.5625, 0.5625]
    >>> capacities_of_tasks(workers=2, tasks=2, capacities=[3, 1])
    [3.0, 1.0, 2.25, 0.75]
    """
    if tasks == 1:
        return None if capacities is None else list(capacities)
    own = np.ones(workers) if capacities is None else np.asarray(capacities, float)
    return np.outer(SHRINKING ** np.arange(tasks), own).ravel().tolist()
