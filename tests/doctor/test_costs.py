"""Costs of strategies: bounds that hold for any data, and agreement with routed messages."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import metrics, schemes
from steelyard.datasets import zipf_ranks
from steelyard.doctor.costs import costs, slowdown
from steelyard.doctor.estimates import Estimates
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import FACTORS, KeyCounts
from steelyard.doctor.loads import EPSILON
from steelyard.doctor.strategies import compared
from steelyard.doctor.work import AGGREGATE, JOIN, PYTHON, WORKS
from steelyard.hashing import mix64
from tests.strategies import KEY_COUNTS


def by_strategy(plain, workers, capacities=None, work=PYTHON):
    job = Job(work, ("k",), workers, None if capacities is None else tuple(capacities))
    counts = KeyCounts.of(plain, workers)
    return {cost.strategy.name: cost for cost in costs(counts, job)}


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30))
def test_bounds_hold_for_any_counts(plain, workers):
    """No strategy beats equal loads, a hash cannot split a key, two choices halve it at best."""
    found = by_strategy(plain, workers)
    p1 = max(plain.values()) / sum(plain.values())
    assert [strategy.name for strategy in compared("python")] == list(found)
    more = found.pop("kg-more")
    assert more.tasks in {200, *(factor * workers for factor in FACTORS)}
    assert p1 <= more.largest_share <= found["kg"].largest_share or more.tasks % workers
    assert more.slowdown >= max(1, workers * more.largest_share) - 1e-9
    for cost in found.values():
        assert cost.slowdown >= 1 - 1e-9
        assert cost.slowdown == pytest.approx(cost.largest_share * workers)
        assert cost.tasks == workers
        assert 1 <= cost.copies <= workers
        assert 1 <= cost.hottest_copies <= workers
    assert found["kg"].slowdown - 1 >= workers * p1 - 1 - 1e-9
    assert found["kg"].copies == found["kg"].hottest_copies == 1
    assert found["pkg"].slowdown >= workers * p1 / 2 - 1e-9
    assert found["pkg"].hottest_copies <= 2
    assert found["salting"].hottest_copies <= 10
    assert found["cg"].slowdown <= (1 + EPSILON) * (1 + 1e-6)


@settings(max_examples=30)
@given(KEY_COUNTS, st.integers(1, 30))
def test_a_hot_key_is_on_enough_workers(plain, workers):
    """A key with a share p needs at least n p / (1 + epsilon) of n workers."""
    total = sum(plain.values())
    p1 = max(plain.values()) / total
    least = min(ceil(workers * p1 / (1 + EPSILON) - 1e-6), max(plain.values()))
    assert by_strategy(plain, workers)["cg"].hottest_copies >= least


@settings(max_examples=30)
@given(KEY_COUNTS, st.lists(st.floats(0.1, 10), min_size=1, max_size=12))
def test_loads_follow_capacities(plain, capacities):
    """Consistent grouping is within epsilon of the ideal time; no strategy is below it."""
    found = by_strategy(plain, len(capacities), capacities)
    assert all(cost.slowdown >= 1 - 1e-9 for cost in found.values())
    assert found["cg"].slowdown <= (1 + EPSILON) * (1 + 1e-6)


def test_equal_loads_are_slow_on_slow_workers():
    """Round robin takes the time of its slowest worker."""
    found = by_strategy({str(i): 10 for i in range(1000)}, 4, [3, 3, 3, 1])
    assert found["sg"].slowdown == pytest.approx(10 / 4)
    assert slowdown(np.array([3.0, 3, 3, 1]), np.array([3.0, 3, 3, 1])) == 1


def test_expected_copies_are_those_of_routed_messages():
    """For round robin and salting, computed copies agree with routed messages."""
    workers = 24
    ranks = zipf_ranks(200_000, 1.0, keys=5_000, seed=1)
    plain = {str(key): int(n) for key, n in enumerate(np.bincount(ranks)) if n}
    found = by_strategy(plain, workers)
    went = schemes.named("sg").router(workers).route_many(mix64(ranks.astype(np.uint64)))
    shuffled = metrics.memory_cost(ranks, went, workers)
    assert found["sg"].copies == pytest.approx(shuffled, rel=0.02)
    went = schemes.named("salting").router(workers).route_many(mix64(ranks.astype(np.uint64)))
    salted = metrics.memory_cost(ranks, went, workers)
    assert found["salting"].copies == pytest.approx(salted, rel=0.02)


@settings(max_examples=20)
@given(KEY_COUNTS, st.integers(1, 30), st.sampled_from(WORKS))
def test_overhead_is_time_in_addition(plain, workers, work):
    """No stage with overhead beats an ideal one, and longer rows make the overhead smaller."""
    counts = KeyCounts.of(plain, workers)
    for short, long in zip(
        costs(counts, Job(work, ("k",), workers, estimates=Estimates(row_time=10))),
        costs(counts, Job(work, ("k",), workers, estimates=Estimates(row_time=1e9))),
        strict=True,
    ):
        assert min(short.with_overhead, long.with_overhead) >= 1 - 1e-6 or short.tasks < workers
        if short.tasks == long.tasks:
            assert long.with_overhead == pytest.approx(long.slowdown, rel=0.01)


def test_each_work_is_compared_with_sparks_own_remedy():
    """A join has adaptive execution, an aggregate the combination in map tasks."""
    plain = {"hot": 5000, **{f"key {i}": 3 for i in range(1000)}}
    assert {"adaptive", "adaptive-small"} <= by_strategy(plain, 8, work=JOIN).keys()
    assert "kg-more" not in by_strategy(plain, 8, work=JOIN)
    combined = by_strategy(plain, 8, work=AGGREGATE)["combined"]
    assert combined.slowdown == 1
    assert "partial results, not all rows" in combined.note
