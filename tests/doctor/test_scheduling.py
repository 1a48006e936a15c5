"""The time of a stage is that of Spark's scheduling of tasks over task slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.doctor.scheduling import stage_time

TIMES = st.lists(st.integers(0, 1000), min_size=1, max_size=60)
SPEEDS = st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=1, max_size=8)


def plain_stage_time(times, speeds):
    """Give each task to the task slot that is free first."""
    free = [0.0] * len(speeds)
    for time in times:
        slot = free.index(min(free))
        free[slot] += time / speeds[slot]
    return max(free)


@given(TIMES, SPEEDS)
def test_each_task_runs_on_the_slot_that_is_free_first(times, speeds):
    """The tasks start in the order of their partitions."""
    assert stage_time(times, np.array(speeds)) == plain_stage_time(times, speeds)


@given(TIMES, st.integers(1, 8))
def test_a_stage_takes_at_most_one_task_longer_than_equal_loads(times, slots):
    """It takes at least the mean, and at least the longest task."""
    found = stage_time(times, np.ones(slots))
    mean = sum(times) / slots
    assert max(mean, *times) <= found <= mean + max(times)


@pytest.mark.parametrize(("times", "expected"), [([1, 1, 1, 4], 5), ([4, 1, 1, 1], 4)])
def test_a_long_task_that_starts_last_keeps_the_stage_waiting(times, expected):
    """Spark does not know which task is long."""
    assert stage_time(times, np.ones(2)) == expected
