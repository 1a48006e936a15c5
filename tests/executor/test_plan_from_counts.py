"""A task plans like a planner, and forgets earlier counts."""

import pickle

import numpy as np
import pytest

from steelyard.executor.plan_from_counts import PlanFromCounts
from steelyard.plans import Planner

COUNTS = {3: 60.0, 5: 2.0, 6: 1.0}


def planning(workers):
    return PlanFromCounts(0.01, 16, np.ones(workers), np.arange(workers) + 100)


def test_it_plans_like_a_planner_each_time():
    """A second call has the same result, although a planner would remember the first counts."""
    task = pickle.loads(pickle.dumps(planning(4)))
    plan = Planner(4, buckets=16).update([COUNTS.get(bucket, 0.0) for bucket in range(16)])
    expected = plan.table(np.arange(4) + 100, steps=2).entries.tolist()
    assert plan.splits
    for _ in range(2):
        assert expected == task([*COUNTS.items(), (7, None)])


@pytest.mark.parametrize(("workers", "steps"), [(1, 0), (2, 1), (3, 2), (24, 5), (32, 5), (33, 6)])
def test_the_steps_are_enough_for_a_bucket_with_all_workers(workers, steps):
    """A binary search over the ends of their cells takes this number of steps."""
    assert steps == planning(workers).steps


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_impossible_weights_are_refused(wrong):
    with pytest.raises(ValueError, match="weight: the column must hold numbers of at least 0"):
        planning(4)([(3, wrong)])
