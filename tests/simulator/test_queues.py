"""The simulator agrees with queueing theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import schemes
from steelyard.delegation import SteadyRules
from steelyard.simulator import (
    ArrayStream,
    Cluster,
    ConsistentGrouping,
    Direct,
    Exponential,
    PerKey,
    SimulationSettings,
    simulate,
    spread_over_workers,
)

KG, SG = Direct(schemes.named("kg")), Direct(schemes.named("sg"))


def poisson(messages, rate, seed=0):
    """Return a stream with one key and Poisson arrivals."""
    gaps = np.random.default_rng(seed).exponential(1 / rate, messages)
    return ArrayStream(np.zeros(messages, np.uint32), np.cumsum(gaps))


@pytest.mark.parametrize(("load", "messages"), [(0.5, 2e6), (0.8, 5e6), (0.95, 2e7)])
@pytest.mark.parametrize("service", [None, Exponential()], ids=["M/D/1", "M/M/1"])
def test_the_mean_waiting_time_agrees_with_theory(load, messages, service):
    """It is within 2 % of rho / (mu - lambda), or of half of that for deterministic service."""
    stream = poisson(int(messages), load, seed=5)
    outcome = simulate(
        stream, Cluster.of([1.0]), KG, SimulationSettings(slot=6000, tick=6000, service=service)
    )
    expected = load / (1 - load) / (1 if service else 2)
    assert outcome.mean_latency - 1 == pytest.approx(expected, rel=0.02)


@given(st.integers(0, 2**32), st.integers(1, 4), st.floats(0.3, 2))
def test_messages_are_conserved(seed, workers, load):
    """At every tick a message that arrived is finished or queued; in the end all finish."""
    stream = poisson(2000, 100, seed)
    cluster = Cluster.machines(workers, total=100 / load)
    outcome = simulate(stream, cluster, SG, SimulationSettings(slot=1.0, tick=0.5, overload=True))
    tally = outcome.tally
    arrived, finished = (t[:-1].cumsum(axis=0) for t in (tally.arrivals, tally.finishes))
    assert (arrived == finished + outcome.queue_length).all()
    assert (outcome.queue_length >= 0).all()
    assert 2000 == tally.finishes.sum() == tally.latencies.sum() == outcome.messages


@given(st.integers(0, 2**32))
def test_a_worker_with_a_queue_is_never_idle(seed):
    """A worker whose queue is longer than a tick's work finishes a full tick of work."""
    stream = poisson(3000, 120, seed)
    outcome = simulate(
        stream, Cluster.of([50.0, 50.0]), SG, SimulationSettings(slot=1, tick=1, overload=True)
    )
    queue, finishes = outcome.queue_length, outcome.tally.finishes[:-1]
    always_busy = queue[:-1] > 50
    assert (np.abs(finishes[1:][always_busy] - 50) <= 1).all()


def test_the_service_time_depends_on_the_work_of_the_key():
    """A message with ten units of work takes ten times as long as one with one unit."""
    stream = ArrayStream(np.array([0, 1], np.uint32), np.array([0.0, 100.0]))
    outcome = simulate(
        stream, Cluster.of([2.0]), KG, SimulationSettings(service=PerKey(np.array([1.0, 10.0])))
    )
    assert outcome.mean_latency == pytest.approx((0.5 + 5) / 2)


def test_latency_quantiles_agree_with_theory():
    """The quantiles come from latency bins, for each tick and for all messages."""
    stream = poisson(200_000, 0.8, seed=2)
    outcome = simulate(
        stream,
        Cluster.of([1.0]),
        KG,
        SimulationSettings(slot=1000, tick=1000, service=Exponential()),
    )
    # Time in an M/M/1 system is exponential with rate mu - lambda.
    for rank in (0.5, 0.9, 0.99):
        expected = -np.log(1 - rank) / 0.2
        assert outcome.total_latency_quantile(rank) == pytest.approx(expected, rel=0.15)
    by_tick = outcome.latency_quantile(0.5)
    assert by_tick.size == outcome.times.size
    exact = simulate(ArrayStream.at_rate(np.zeros(100), 0.5), Cluster.of([1.0]), KG)
    assert exact.total_latency_quantile(0.99) == pytest.approx(1.0, rel=0.02)


def test_speeds_change_at_a_time_or_at_a_message():
    """A worker that becomes half as fast has twice the latency from then on."""
    stream = ArrayStream.at_rate(np.zeros(100), rate=1.0)
    slower = Cluster.of([4.0, 2.0])
    by_message = slower.then(at_message=50, fast=1, times=0.5)
    by_time = slower.then(at=50.0, fast=1, times=0.5)
    assert (2.0, 4.0) == by_message.changes[0].speeds
    outcomes = [
        simulate(stream, c, SG, SimulationSettings(slot=10, tick=10)) for c in (by_message, by_time)
    ]
    assert outcomes[0].latency.tolist() == outcomes[1].latency.tolist()
    assert [0.25, 0.5] == outcomes[0].latency[0].tolist()
    assert [0.5, 0.25] == outcomes[0].latency[-1].tolist()
    assert [40.0, 20.0] == outcomes[0].capacity[0].tolist()
    assert [20.0, 40.0] == outcomes[0].capacity[-1].tolist()


def test_periodic_aggregation_sends_each_partial_state_once_per_period():
    """The example has two workers, three keys and ten periods of ten seconds."""
    keys = np.tile([0, 1, 2], 1000)
    stream = ArrayStream.at_rate(keys, rate=30)
    outcome = simulate(
        stream, Cluster.machines(2, total=60), SG, SimulationSettings(slot=5, tick=5, period=10)
    )
    assert [6] * 10 == outcome.aggregated.tolist()
    grouped = simulate(
        stream, Cluster.machines(2, total=60), KG, SimulationSettings(slot=5, tick=5, period=10)
    )
    assert [3] * 10 == grouped.aggregated.tolist()
    assert 1.0 == grouped.memory_cost
    assert 2.0 == outcome.memory_cost


def test_delegation_balances_an_unequal_cluster():
    """Queues stay short with consistent grouping and grow with key and shuffle grouping."""
    keys = np.random.default_rng(0).zipf(1.3, 400_000) % 10_000
    stream = ArrayStream.at_rate(keys, rate=400)
    cluster = Cluster.machines(10, fast=3, times=5, total=500)
    ends = {
        name: simulate(stream, cluster, grouping, SimulationSettings(slot=10, tick=10))
        .queue_length[-1]
        .max()
        for name, grouping in {"kg": KG, "sg": SG, "cg": ConsistentGrouping()}.items()
    }
    assert ends["cg"] < 100 < ends["sg"] < ends["kg"]


def test_ten_sources_balance_an_unequal_cluster():
    """Each source has its own copy of the assignment."""
    keys = np.random.default_rng(0).zipf(1.3, 400_000) % 10_000
    stream = ArrayStream.at_rate(keys, rate=400)
    cluster = Cluster.machines(10, fast=3, times=5, total=500)
    outcome = simulate(
        stream, cluster, ConsistentGrouping(), SimulationSettings(sources=10, slot=10, tick=10)
    )
    assert outcome.queue_length[-1].max() < 100
    assert outcome.signals.max() <= 100


def test_no_virtual_worker_moves_in_the_quiet_seconds():
    """Workers make no reports in the first `quiet` seconds."""
    stream = ArrayStream.at_rate(np.arange(20_000) % 500, rate=100)
    cluster = Cluster.machines(4, fast=1, times=5, total=130)
    outcome = simulate(
        stream, cluster, ConsistentGrouping(), SimulationSettings(slot=10, tick=10, quiet=100)
    )
    assert 0 == outcome.moves[:10].sum()
    assert 0 < outcome.moves[10:].sum()


def test_the_spread_over_workers_is_max_minus_min_and_max_minus_mean():
    """Ticks without a value are zero."""
    spread, surplus = spread_over_workers(np.array([[1.0, 3.0], [np.nan, 2.0], [np.nan, np.nan]]))
    assert [2.0, 0.0, 0.0] == spread.tolist()
    assert [1.0, 0.0, 0.0] == surplus.tolist()


def test_a_stream_without_messages_is_simulated():
    """All totals are zero, and quantiles are NaN."""
    outcome = simulate(ArrayStream(np.empty(0, np.uint32), np.empty(0)), Cluster.of([1.0]), KG)
    assert 0 == outcome.messages == outcome.memory_cost == outcome.mean_latency
    assert np.isnan(outcome.total_latency_quantile(0.5))


TINY = ArrayStream.at_rate(np.zeros(3), rate=1)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda: Cluster.of([]), "a cluster needs at least one worker"),
        (lambda: Cluster.of([1, 0]), "a worker's speed must be a number above 0, got 0.0"),
        (lambda: Cluster.machines(3, fast=4, total=1), "fast must be a whole number, from 0 to 3"),
        (lambda: Cluster.machines(3, total=0), "total must be a number above 0, got 0"),
        (lambda: Cluster.of([1]).then(fast=1, times=2), "pass either `at` or `at_message`"),
        (
            lambda: (
                Cluster.of([1])
                .then(at=5, fast=1, times=2)
                .then(at=1, fast=1, times=2)
                .timetable([])
            ),
            "the time of a change must be a number at least 5, got 1",
        ),
        (
            lambda: simulate(TINY, Cluster.of([1]), KG, SimulationSettings(sources=0)),
            "sources must be a whole number",
        ),
        (
            lambda: simulate(TINY, Cluster.of([1]), KG, SimulationSettings(slot=0)),
            "slot must be a number above 0",
        ),
        (
            lambda: simulate(TINY, Cluster.of([1]), KG, SimulationSettings(slot=60, tick=7)),
            "slot must be a multiple of tick, 7 s, got 60 s",
        ),
        (
            lambda: simulate(TINY, Cluster.of([1]), KG, SimulationSettings(period=90)),
            "period must be a multiple of slot, 60.0 s, got 90 s",
        ),
        (
            lambda: ConsistentGrouping(virtual_workers=0, rules=SteadyRules()),
            "virtual_workers must be a whole number, at least 1, got 0",
        ),
        (
            lambda: ArrayStream(np.zeros(2, np.uint32), np.zeros(1)),
            "one time for each key",
        ),
        (
            lambda: ArrayStream(np.zeros(2, np.uint32), np.array([1.0, 0.5])),
            "must start at 0 or later and never decrease",
        ),
    ],
)
def test_bad_settings_are_refused(act, sentence):
    """The error message names the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        act()
