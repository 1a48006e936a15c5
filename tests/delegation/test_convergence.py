"""The steady rules converge where the paper's do not."""

import numpy as np
import pytest

from steelyard.delegation import BusyTime, Measurement, PaperRules, SteadyRules, fair_busy_time
from tests.delegation.model import Model, capacities

SLOTS = {
    20: {(3, 5): 7, (1, 2): 0, (5, 4): 4, (2, 10): 13, (9, 10): 7},
    100: {(3, 5): 12, (1, 2): 0, (5, 4): 18, (2, 10): 29, (9, 10): 8},
    1000: {(3, 5): 37, (1, 2): 0, (5, 4): 25, (2, 10): 52, (9, 10): 21},
}
"""Virtual workers per worker -> {y, z} -> slots that a first version of the rules needed."""


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
    """No worker stays above 95 %, after no more slots than max(5, twice the first version's)."""
    converged = Model(SteadyRules(), each=each, seed=seed).slots_to_converge(*cluster)
    assert converged is not None
    assert converged <= max(5, 2 * SLOTS[each][cluster])


@pytest.mark.parametrize("each", [20, 100])
def test_the_papers_rules_deadlock(each):
    """Nine fast workers and a slow one: all slack is inside everyone's dead band."""
    assert Model(PaperRules(), each=each).slots_to_converge(9, 10) is None


def test_the_papers_rules_are_slow_with_many_virtual_workers():
    """One virtual worker per pair and slot: a thousand of them take hundreds of slots."""
    assert Model(PaperRules(), each=1000).slots_to_converge(3, 5) is None


def test_steady_rules_follow_changing_capacities():
    """{3,5}, then {5,4}, then {2,10}: balanced again within 30 slots of each change."""
    model = Model(SteadyRules(), each=100)
    for cluster in [(3, 5), (5, 4), (2, 10)]:
        speeds = capacities(10, *cluster, model.total)
        highest = [model.slot(speeds)[0].max() for _ in range(60)]
        assert max(highest[30:]) <= 0.95


def test_steady_rules_rest_when_balanced():
    """After convergence no virtual worker moves, though the measurements go on."""
    model = Model(SteadyRules(), each=100)
    speeds = capacities(10, 3, 5, model.total)
    moves = [len(model.slot(speeds)[1]) for _ in range(200)]
    assert not any(moves[100:])


def saturated_throughput(cluster, *, compare):
    """Batches back to back: messages a second against the sum of capacities, after 40 slots.

    A batch lasts as long as its slowest worker.
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
def test_at_saturation_workers_compare_themselves(cluster):
    """Compared with what is fair, workers reach 95 % of the sum of capacities."""
    assert saturated_throughput(cluster, compare=True) >= 0.95


def test_at_saturation_thresholds_are_not_enough():
    """Fast workers call themselves busy at 85 % and leave the slow one with too much."""
    cluster = (9, 10)
    fixed = saturated_throughput(cluster, compare=False)
    assert fixed < 0.95 < saturated_throughput(cluster, compare=True)
