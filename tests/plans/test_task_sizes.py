"""The sizes of tasks, in the order in which Spark starts them."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.plans.task_sizes import SHRINKING, capacities_of_tasks


@given(
    st.integers(1, 8),
    st.lists(st.floats(0.1, 10), min_size=1, max_size=20),
)
def test_tasks_shrink_and_keep_proportions(tasks, capacities):
    """Each worker's tasks shrink by the same factor; totals are proportional to capacities."""
    sizes = np.reshape(
        capacities_of_tasks(len(capacities), tasks, capacities), (tasks, len(capacities))
    )
    np.testing.assert_allclose(sizes[1:], sizes[:-1] * SHRINKING)
    np.testing.assert_allclose(sizes.sum(axis=0) / sizes.sum(), capacities / np.sum(capacities))


def test_shrinking_tasks_use_unequal_machines_better_than_equal_tasks():
    """Over many clusters, five shrinking tasks per worker use more time than eight equal ones."""
    rng = np.random.default_rng(5)
    used = {"five": [], "eight": []}
    for _ in range(200):
        workers = int(rng.choice([8, 16, 24]))
        speeds = np.ones(workers)
        speeds[: rng.integers(1, workers // 2)] = rng.uniform(0.2, 0.9)
        noise = rng.uniform(0.98, 1.02, 8 * workers)
        shrinking = np.array(capacities_of_tasks(workers, 5))
        used["five"].append(_used(shrinking * noise[: shrinking.size], speeds))
        used["eight"].append(_used(noise, speeds))
    assert np.mean(used["five"]) > 0.9
    assert np.mean(used["five"]) > np.mean(used["eight"])
    assert np.quantile(used["five"], 0.1) > 0.8


def _used(tasks, speeds):
    """Return the fraction of the machines' time in use if each free machine takes a task."""
    free = [(0.0, machine) for machine in range(len(speeds))]
    for task in tasks:
        when, machine = heapq.heappop(free)
        heapq.heappush(free, (when + task / speeds[machine], machine))
    return tasks.sum() / speeds.sum() / max(when for when, _ in free)
