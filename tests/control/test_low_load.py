"""The floor of the control loop: too little work to judge workers."""

import numpy as np
import pytest

from steelyard.control.controller import SlotLength
from steelyard.control.low_load import LEAST_MESSAGES, LOW_LOAD
from tests.control.model import Model, controller, zipf

SPEEDS = [1000.0] * 3
"""Messages a second: 30 messages in a micro-batch of one second are a load of 1 %."""


def owned(model):
    """Return the number of virtual workers of each worker in each slot."""
    return [[w.virtual_workers for w in slot.workers] for slot in model.controller.history]


@pytest.mark.parametrize("rows", [30, 50])
def test_at_low_load_no_share_changes(rows):
    """The time to start a task is noise; at a load of 1 or 2 % nothing moves, in 200 slots."""
    model = Model(SPEEDS, controller(3), zipf(0.5), rows=rows, seconds=1.0, start=0.01, varies=True)
    model.run(200)
    assert [[100] * 3] * 200 == owned(model)
    assert {"normal"} == {w.state for slot in model.controller.history for w in slot.workers}


@pytest.mark.parametrize("load", [0.1, 0.2, 0.8])
def test_above_the_floor_workers_converge_as_without_pauses(load):
    """The length of a micro-batch has no effect: every slot uses as much of the capacity."""
    speeds = np.array([1, 1, 1, 1, 1, 1, 0.3, 0.3]) * 10_000
    rows = round(load * speeds.sum())
    used = Model(speeds, controller(), zipf(1.0), rows=rows, seconds=1.0).run(20)
    assert used == Model(speeds, controller(), zipf(1.0), rows=rows).run(20)
    assert used[0] < 0.55
    assert np.mean(used[6:]) >= 0.9


def test_the_first_slot_above_the_floor_is_judged_alone():
    """The work of slots with a low load is not added to it."""
    model = Model([1e4, 1e4, 3e3], controller(3), rows=30, seconds=1.0, start=0.003)
    model.run(100)
    model.rows = 18_000
    used = model.run(4)
    assert used[0] < 0.5
    assert min(used[2:]) > 0.9


def test_the_floor_is_that_of_the_whole_slot():
    """One large micro-batch in a slot of many short ones is enough to judge its workers."""
    loop = controller(3, slot=SlotLength(batches=10))
    model = Model([1000, 1000, 300], loop, rows=10, seconds=0.5)
    model.run(9)
    model.rows = 1800
    model.run(1)
    (slot,) = loop.history
    assert slot.busiest > LOW_LOAD * slot.seconds
    assert {2} == {giver for _, giver, _ in slot.moves}


def test_few_messages_are_added_until_speeds_are_known():
    """Three messages a second are a high load here, and their service times vary."""
    moved = {}
    for rows, slots in ((3, 300), (300, 3)):
        model = Model(np.full(3, rows / 2.4), controller(3), rows=rows, seconds=1.0, varies=True)
        model.run(slots)
        moved[rows] = [slot.slot for slot in model.controller.history if slot.moves]
    assert min(np.diff([0, *moved[3]])) >= LEAST_MESSAGES


def test_saturated_micro_batches_are_never_low_load():
    """Short micro-batches without pauses are judged, however short they are."""
    model = Model(np.array([1e6, 1e6, 3e5]), controller(3), rows=20_000)
    assert model.run(60)[-1] > 0.93
