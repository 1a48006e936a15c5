"""The compiled simulator agrees with a plain event-by-event simulator, its twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import schemes
from steelyard.delegation import BusyTime, PaperRules, SteadyRules
from steelyard.simulator import (
    ArrayStream,
    Cluster,
    ConsistentGrouping,
    Direct,
    Plans,
    SimulationSettings,
    kernel,
    simulate,
)
from tests.simulator import plain


@st.composite
def streams(draw):
    """Draw up to 300 messages in about ten seconds, in bursts or with even gaps."""
    count = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    keys = rng.zipf(draw(st.floats(1.2, 3)), count) % 40
    gaps = rng.exponential(10 / count, count) ** draw(st.sampled_from([1, 3]))
    return ArrayStream(keys.astype(np.uint32), np.cumsum(gaps))


@st.composite
def clusters(draw):
    """Draw one to five workers with different speeds that change up to two times."""
    workers = draw(st.integers(1, 5))
    speeds = st.lists(st.floats(1, 50), min_size=workers, max_size=workers)
    cluster = Cluster.of(draw(speeds))
    at = 0.0
    for _ in range(draw(st.integers(0, 2))):
        at += draw(st.floats(0.1, 5))
        cluster = cluster.then(
            at=at, fast=draw(st.integers(0, workers)), times=draw(st.floats(0.2, 5))
        )
    return cluster


@st.composite
def ties(draw):
    """Draw times and speeds on a grid, so that several events happen at the same time."""
    count = draw(st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    times = np.sort(rng.integers(0, 160, count)) / 16
    keys = rng.zipf(2, count) % 40
    workers = draw(st.integers(1, 5))
    speeds = draw(st.lists(st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
                           min_size=workers, max_size=workers))  # fmt: skip
    return ArrayStream(keys.astype(np.uint32), times), Cluster.of(speeds)


GROUPINGS = st.one_of(
    st.sampled_from(["kg", "sg", "pkg", "porc"]).map(lambda name: Direct(schemes.named(name))),
    st.builds(
        ConsistentGrouping,
        scheme=st.sampled_from([schemes.named("porc"), Plans(buckets=64)]),
        virtual_workers=st.integers(1, 10),
        rules=st.sampled_from([SteadyRules(), PaperRules(), SteadyRules(measure=BusyTime())]),
    ),
)


@settings(max_examples=150)
@given(st.tuples(streams(), clusters()) | ties(), GROUPINGS, st.integers(1, 4))
def test_the_simulator_agrees_with_its_plain_twin(case, grouping, sources):
    """Latency, queue lengths and moves are the same in every slot."""
    stream, cluster = case
    finished, moves, lengths = plain.simulate(stream, cluster, grouping, sources=sources, slot=1.0)
    outcome = simulate(
        stream,
        cluster,
        grouping,
        SimulationSettings(sources=sources, slot=1.0, tick=1.0, overload=True),
    )
    latency = np.array(finished) - stream.times
    assert outcome.mean_latency == pytest.approx(latency.mean(), rel=1e-9, abs=1e-12)
    assert outcome.queue_length.tolist() == lengths
    expected = np.bincount([slot for slot, _ in moves], minlength=outcome.moves.size)
    assert outcome.moves.tolist() == expected.tolist()


def test_arrived_acknowledgments_are_delivered_in_parts():
    """`due` does not overflow if more acknowledgments have arrived than it can hold."""
    acks = kernel.Acknowledgments(
        times=np.array([1.0, 1.0, 1.0]),
        pairs=np.array([0, 1, 2]),
        size=np.array([3, 0]),
        due=np.zeros(2, np.int64),
        next_signal=np.zeros(3),
        may_move=np.zeros(3, np.bool_),
    )
    assert kernel._collect(acks, 1.0, 1)
    assert acks.due.tolist() == [0, 1]
    acks.size[1] = 0
    assert not kernel._collect(acks, 1.0, 1)
    assert acks.due[0] == 2
    assert acks.size.tolist() == [0, 1]
