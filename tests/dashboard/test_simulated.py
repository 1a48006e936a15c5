"""A simulation as slots."""

from dataclasses import replace

import numpy as np
import pytest

from steelyard.dashboard.owners import Ownership
from steelyard.dashboard.simulated import example_slots, slots_of
from steelyard.datasets import named
from steelyard.schemes import KeyGrouping
from steelyard.simulator import Cluster, ConsistentGrouping, Direct, SimulationSettings, simulate

STREAM = replace(named("zf", fraction=0.002, keys=500), seconds=20.0)
CLUSTER = Cluster((500.0, 500.0, 250.0))


def run(grouping, **more):
    return simulate(
        STREAM, CLUSTER, grouping, SimulationSettings(slot=1.0, tick=0.5, overload=True, **more)
    )


@pytest.mark.parametrize("sources", [1, 3])
def test_slots_agree_with_the_simulation(sources):
    """Messages, queues, moves and owners agree; of several sources the first counts."""
    outcome = run(ConsistentGrouping(virtual_workers=10), sources=sources)
    slots = slots_of(outcome, STREAM)
    assert outcome.messages == sum(slot.messages for slot in slots) == slots[-1].messages_so_far
    assert {1.0} == {round(sum(worker.share for worker in slot.workers), 9) for slot in slots}
    backlogs = [[worker.backlog for worker in slot.workers] for slot in slots]
    assert outcome.every(1.0).queue_length.tolist() == backlogs
    assert slots[-1].moves_so_far == len(outcome.first_moves) > 0
    owners = Ownership(slots)
    for place, slot in enumerate(slots):
        counts = np.bincount(owners.at(place).owners, minlength=3).tolist()
        assert counts == [worker.virtual_workers for worker in slot.workers]
        if sources == 1:
            assert outcome.owned[place].tolist() == counts
    if sources == 1:
        assert outcome.moves.sum() == len(outcome.first_moves)


def test_states_and_capacities_are_those_of_the_workers():
    """The slow worker is busy at first, and its capacity is half that of the others."""
    slots = slots_of(run(ConsistentGrouping(virtual_workers=10)), STREAM)
    assert "busy" == slots[0].workers[2].state
    assert [500.0, 500.0, 250.0] == pytest.approx([1 / w.service for w in slots[0].workers])
    hot = slots[0].hot_keys
    assert hot[0].share == max(key.share for key in hot) > 0.1


def test_key_grouping_has_neither_states_nor_moves():
    """Every worker has one virtual worker, and no slot records owners."""
    slots = slots_of(run(Direct(KeyGrouping())), STREAM, "number {}".format)
    assert {"normal"} == {worker.state for slot in slots for worker in slot.workers}
    assert not any(slot.moves or slot.owners for slot in slots)
    assert slots[0].hot_keys[0].key.startswith("number ")


def test_virtual_workers_move_in_both_halves_of_the_example():
    """Other workers become slow halfway."""
    slots = example_slots(messages=60_000, slots=40)
    moves = [len(slot.moves) for slot in slots]
    assert sum(moves[:20]) > 0 < sum(moves[20:])
