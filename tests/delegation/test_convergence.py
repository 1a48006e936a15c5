"""The steady rules converge in cases in which the paper's rules do not."""

import numpy as np
import pytest

from steelyard.delegation import BusyTime, Measurement, PaperRules, SteadyRules, fair_busy_time
from tests.delegation.model import Model, capacities

SLOTS = {
    20: {(3, 5): 7, (1, 2): 0, (5, 4): 4, (2, 10): 13, (9, 10): 7},
    100: {(3, 5): 12, (1, 2): 0, (5, 4): 18, (2, 10): 29, (9, 10): 8},
    1000: {(3, 5): 37, (1, 2): 0, (5, 4): 25, (2, 10): 52, (9, 10): 21},
}
"""Virtual workers per worker -> {y, z} -> the slots that the first version of the rules needed."""


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("each", "cluster"),
    [
        pytest.param(each, cluster, id=f"{each} virtual workers, {{{cluster[0]},{cluster[1]}}}")
        for each, clusters in SLOTS.items()
        for cluster in clusters
    ],
)
def test_steady_rules_converge(each, cluster, seed):
    """No worker stays above 95 % after max(5, twice the slots of the first version) slots."""
    converged = Model(SteadyRules(), each=each, seed=seed).slots_to_converge(*cluster)
    assert converged is not None
    assert converged <= max(5, 2 * SLOTS[each][cluster])


@pytest.mark.parametrize("each", [20, 100])
def test_the_papers_rules_deadlock(each):
    """With nine fast workers and a slow one, all free capacity is within the normal bands."""
    assert Model(PaperRules(), each=each).slots_to_converge(9, 10) is None


def test_the_papers_rules_are_slow_with_many_virtual_workers():
    """Each pair moves one virtual worker per slot, so a thousand take hundreds of slots."""
    assert Model(PaperRules(), each=1000).slots_to_converge(3, 5) is None


def test_steady_rules_follow_changing_capacities():
    """The load is balanced 30 slots after each change of the cluster."""
    model = Model(SteadyRules(), each=100)
    for cluster in [(3, 5), (5, 4), (2, 10)]:
        speeds = capacities(10, *cluster, model.total)
        highest = [model.slot(speeds)[0].max() for _ in range(60)]
        assert max(highest[30:]) <= 0.95


def test_steady_rules_move_no_virtual_worker_after_convergence():
    model = Model(SteadyRules(), each=100)
    speeds = capacities(10, 3, 5, model.total)
    moves = [len(model.slot(speeds)[1]) for _ in range(200)]
    assert not any(moves[100:])


def saturated_throughput(cluster, *, compare):
    """Return the throughput, divided by the sum of capacities, after 40 slots without pauses.

    A slot lasts as long as its slowest worker.
    """
    rules = SteadyRules() if compare else SteadyRules(measure=BusyTime())
    model = Model(rules, each=100, per_slot=60_000)
    speeds = capacities(10, *cluster, model.total)
    durations = []
    fair_busy = None
    for now in range(1, 61):
        virtuals = model.router.route_many(model.hashes[now % 50])
        owners = model.source.assignment.owners[virtuals]
        busy = np.bincount(owners, minlength=10) / speeds
        durations.append(busy.max())
        owned = [model.source.assignment.count(w) for w in range(10)]
        seen = [
            Measurement(arrivals=busy[w] * speeds[w], busy=busy[w] / (1 if compare else busy.max()))
            for w in range(10)
        ]
        if compare:
            fair_busy = fair_busy_time(seen)
        for w in model.rng.permutation(10).tolist():
            report = model.sides[w].report(seen[w], owned[w], float(now), fair_busy)
            model.source.acknowledge(w, report)
    return model.per_slot * 20 / sum(durations[40:]) / speeds.sum()


@pytest.mark.parametrize("cluster", [(3, 5), (5, 4), (2, 10), (9, 10)])
def test_at_saturation_comparing_with_the_fair_busy_time_is_enough(cluster):
    """The throughput reaches 95 % of the sum of capacities."""
    assert saturated_throughput(cluster, compare=True) >= 0.95


def test_at_saturation_thresholds_are_not_enough():
    """Fast workers are busy above 85 %, so the slow worker keeps too much load."""
    cluster = (9, 10)
    fixed = saturated_throughput(cluster, compare=False)
    assert fixed < 0.95 < saturated_throughput(cluster, compare=True)
