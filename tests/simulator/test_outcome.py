"""The outcome of a simulation: series, totals and error messages."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steelyard import datasets, schemes
from steelyard.delegation import PaperRules, SteadyRules
from steelyard.experiments.paper_setup import constant
from steelyard.simulator import (
    ArrayStream,
    Cluster,
    ConsistentGrouping,
    Direct,
    PerKey,
    Plans,
    SimulationSettings,
    simulate,
)

KG, SG = Direct(schemes.named("kg")), Direct(schemes.named("sg"))


def skewed(messages=20_000, rate=200.0, seed=0):
    keys = np.random.default_rng(seed).zipf(1.5, messages) % 500
    return ArrayStream.at_rate(keys.astype(np.uint32), rate)


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 7, 20]))
def test_longer_ticks_do_not_change_the_outcome(seed, ticks):
    """The totals, and the values at the ends of the longer ticks, stay the same."""
    settings = SimulationSettings(slot=1, tick=0.5, overload=True)
    outcome = simulate(skewed(3000, seed=seed), Cluster.of([150.0, 250.0]), KG, settings)
    longer = outcome.every(0.5 * ticks)
    assert longer.messages == outcome.messages
    assert longer.mean_latency == pytest.approx(outcome.mean_latency)
    assert longer.loads.tolist() == outcome.loads.tolist()
    ends = np.minimum(np.arange(1, longer.times.size + 1) * ticks, outcome.times.size) - 1
    assert longer.queue_length.tolist() == outcome.queue_length[ends].tolist()
    assert longer.memory.tolist() == outcome.memory[ends].tolist()


def test_every_series_has_a_value_per_tick():
    """The series of moves, signals and queue lengths agree with the counts of the outcome."""
    stream = skewed(60_000)
    cluster = Cluster.machines(4, fast=1, times=5, total=250)
    outcome = simulate(stream, cluster, ConsistentGrouping(), SimulationSettings(slot=10, tick=5))
    series = outcome.series()
    wanted = {"queue_length", "latency_mean", "latency_p50", "latency_p99", "utilization_max",
              "imbalance", "memory", "moves", "signals"}  # fmt: skip
    for name in ("queue_length", "latency", "utilization", "memory"):
        wanted |= {f"{name}_max_min", f"{name}_max_avg"}
    assert set(series) == wanted
    assert {values.shape for values in series.values()} == {outcome.times.shape}
    assert series["moves"].sum() == outcome.moves.sum() > 0
    assert series["signals"].sum() == outcome.signals.sum() > 0
    assert (series["moves"][::2] == 0).all()  # at the ends of slots, every second tick
    both = ~np.isnan(series["latency_p50"])
    assert (series["latency_p50"][both] <= series["latency_p99"][both]).all()
    queues = outcome.queue_length
    assert series["queue_length_max_min"].tolist() == np.ptp(queues, axis=1).tolist()
    assert series["queue_length_max_avg"] == pytest.approx(queues.max(axis=1) - queues.mean(axis=1))
    per_slot = outcome.every(10).series()
    assert per_slot["moves"].tolist() == outcome.moves.tolist()


def test_latency_quantiles_are_right_to_two_percent():
    """The quantiles agree with the latencies of a queue that are computed by hand."""
    # Two messages per second arrive, the worker processes one: message i waits i / 2 seconds.
    stream = ArrayStream.at_rate(np.zeros(2000), rate=2.0)
    outcome = simulate(
        stream, Cluster.of([1.0]), KG, SimulationSettings(slot=100, tick=100, overload=True)
    )
    latency = np.arange(2000) / 2 + 1
    for rank in (0.1, 0.5, 0.99):
        exact = np.quantile(latency, rank)
        assert outcome.total_latency_quantile(rank) == pytest.approx(exact, rel=0.03)
    assert outcome.mean_latency == pytest.approx(latency.mean())
    first = outcome.latency_quantile(0.5)[0]  # finished in the first 100 s: the first 100
    assert first == pytest.approx(np.median(latency[:100]), rel=0.03)


def test_convergence_is_measured_in_slots():
    """It is the slot after the last slot in which a worker was above 95 %, or None."""
    stream = constant(60 * 6000, slots=60, skew=0.6)
    rate = stream.messages / stream.seconds
    unequal = Cluster.machines(10, fast=3, times=5, total=rate / 0.8)
    moved = simulate(stream, unequal, ConsistentGrouping(rules=SteadyRules()))
    fixed = simulate(stream, unequal, SG)
    after = moved.converged_after()
    assert after is not None
    busiest = moved.utilization.max(axis=1)
    assert busiest[after - 1] > 0.95
    assert (busiest[after:] <= 0.95).all()
    assert fixed.converged_after() is None
    assert simulate(stream, Cluster.machines(10, total=rate / 0.8), SG).converged_after() == 0
    assert moved.converged_after(over=5) >= after


@pytest.mark.parametrize(
    "grouping", [Direct(Plans(decay=0.5)), ConsistentGrouping(Plans(decay=0.5))]
)
def test_plans_balance_from_the_second_slot_on(grouping):
    """In the first slot each key goes to one bin; in later slots hot keys are split."""
    stream = constant(400_000, slots=20, skew=1.2)
    cluster = Cluster.machines(10, total=stream.messages / stream.seconds / 0.8)
    outcome = simulate(stream, cluster, grouping)
    arrivals = outcome.tally.arrivals[:-1]
    imbalance = arrivals.max(axis=1) / arrivals.mean(axis=1) - 1
    assert imbalance[0] > 0.5
    assert np.median(imbalance[1:]) < 0.06
    assert outcome.plan is not None
    assert outcome.plan.bins == (10 if isinstance(grouping, Direct) else 1000)


def test_all_sources_follow_one_plan():
    """If plans decide, the number of sources does not change the outcome."""
    stream = skewed()
    cluster = Cluster.machines(5, total=250)
    one, many = (
        simulate(stream, cluster, Direct(Plans()), SimulationSettings(sources=s, slot=10, tick=10))
        for s in (1, 7)
    )
    assert one.tally.arrivals.tolist() == many.tally.arrivals.tolist()


def test_copies_of_a_key_are_the_workers_that_held_it():
    """Shuffle grouping copies the hottest key to all workers, key grouping to one."""
    stream = skewed()
    cluster = Cluster.machines(70, total=300)
    assert simulate(stream, cluster, SG).copies_of(1) == 70
    assert simulate(stream, cluster, KG, SimulationSettings(overload=True)).copies_of(1) == 1


@pytest.mark.parametrize(
    "run",
    [
        lambda **how: simulate(
            skewed(rate=300), Cluster.of([100.0, 100.0]), SG, SimulationSettings(**how)
        ),
        lambda **how: simulate(
            skewed(rate=100),
            Cluster.of([60.0, 60.0]),
            SG,
            SimulationSettings(service=PerKey(np.full(500, 2.0)), **how),
        ),
        lambda **how: simulate(
            datasets.named("zf", fraction=0.001),
            Cluster.of([0.1]),
            KG,
            SimulationSettings(slot=3600, tick=3600, **how),
        ),
    ],
    ids=["rate", "work per key", "data set"],
)
def test_overload_is_refused_unless_it_is_allowed(run):
    """The error message gives the load of the cluster."""
    with pytest.raises(ValueError, match=r"the stream needs \d+% of the capacity of the cluster"):
        run()
    assert run(overload=True).queue_length.max() > 0


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.integers(1, 300))
def test_no_message_is_lost_between_slots(rate, slot, messages):
    """Every message is simulated for all lengths of slots, in spite of rounding."""
    stream = ArrayStream.at_rate(np.zeros(messages), rate)
    assume(messages / rate / slot < 10_000)
    outcome = simulate(
        stream, Cluster.of([1.0]), KG, SimulationSettings(slot=slot, tick=slot, overload=True)
    )
    assert outcome.messages == messages == outcome.tally.finishes.sum()


def test_a_last_slot_that_is_cut_short_does_not_count_as_converged():
    """The end of the stream in the middle of a slot lowers the utilization of that slot only."""
    stream = ArrayStream.at_rate(np.zeros(1050), rate=10.0)
    outcome = simulate(stream, Cluster.of([10.0, 10.0]), KG, SimulationSettings(slot=10, tick=10))
    assert outcome.moves.size == 11
    assert outcome.converged_after() is None


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (np.ones(3), "work must have one number for each of 500 keys, got shape"),
        (np.full(500, -1.0), "work must be a finite number, at least 0"),
        (np.full(500, np.nan), "work must be a finite number, at least 0"),
    ],
)
def test_work_must_have_a_number_for_each_key(work, sentence):
    """Otherwise compiled code would read beyond the end of the array."""
    with pytest.raises(ValueError, match=sentence):
        simulate(
            skewed(),
            Cluster.of([300.0]),
            KG,
            SimulationSettings(service=PerKey(work), overload=True),
        )


def test_comparison_with_the_fair_load_balances_workers_that_are_all_busy():
    """At 110 % load no worker is idle, so thresholds alone move no virtual workers."""
    stream = constant(40 * 12_000, slots=40)
    cluster = Cluster.machines(10, fast=2, times=10, total=stream.messages / stream.seconds / 1.1)
    spread = {}
    for above in (None, 0.9):
        outcome = simulate(
            stream,
            cluster,
            ConsistentGrouping(compare_above=above),
            SimulationSettings(overload=True),
        )
        spread[above] = float(np.ptp(outcome.utilization[-5:].mean(axis=0)))
    assert spread[0.9] < 0.2 < spread[None]


def test_full_load_is_not_overload():
    """A load of exactly 100 % is accepted, and so is a peak above 100 % in a lower mean load."""
    simulate(ArrayStream.at_rate(np.zeros(1000), rate=1.0), Cluster.of([1.0]), KG)
    day = datasets.named("wp", fraction=0.001)
    total = day.messages / day.seconds / 0.8
    busy = simulate(day, Cluster.of([total]), KG, SimulationSettings(slot=3600, tick=3600))
    assert busy.utilization.max() > 1


@pytest.mark.parametrize("rules", [PaperRules(), SteadyRules()])
def test_slots_without_messages_are_simulated(rules):
    """A stream may have a long pause."""
    times = np.concatenate([np.arange(500) / 10, 1000 + np.arange(500) / 10])
    stream = ArrayStream(np.arange(1000, dtype=np.uint32) % 50, times)
    outcome = simulate(
        stream,
        Cluster.of([10.0, 10.0]),
        ConsistentGrouping(rules=rules),
        SimulationSettings(slot=10, tick=10),
    )
    assert outcome.messages == 1000
    assert outcome.tally.arrivals[6:99].sum() == 0
