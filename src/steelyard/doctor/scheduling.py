"""Compute how long the tasks of a stage take on the task slots.

Times of tasks and speeds of task slots enter; the time at which the last task ends leaves.
"""

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray


def stage_time(
    tasks: ArrayLike, speeds: NDArray[np.float64], *, is_assigned: bool = False
) -> float:
    """Return the time at which the last task ends.

    Spark starts the tasks in the order of their partitions; a task slot that becomes free takes the
    next one. A long task that starts late therefore keeps the stage waiting.

    >>> two = np.ones(2)
    >>> stage_time([1, 1, 1, 4], two), stage_time([4, 1, 1, 1], two)
    (5.0, 4.0)

    Args:
        tasks: The time of each task on a task slot of speed 1, in the order of the partitions.
        speeds: The speed of each task slot.
        is_assigned: Whether task i runs on task slot i.
    """
    times = np.asarray(tasks, np.float64)
    if is_assigned:
        return float((times / speeds).max())
    free = [(0.0, slot) for slot in range(speeds.size)]
    for time in times.tolist():
        start, slot = free[0]
        heapq.heapreplace(free, (start + time / float(speeds[slot]), slot))
    return max(free)[0]
