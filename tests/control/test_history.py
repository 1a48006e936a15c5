"""The content of a slot, and its JSON."""

import pytest

from steelyard.control.history import Slot, quantile_of
from steelyard.control.store import ControlStore
from tests.control.model import ROWS, Model, controller


def test_latencies_of_several_slots_are_combined():
    """Each slot counts by its messages; without slots the quantile is None."""
    model = Model([1, 1], controller(2))
    model.run(2)
    slots = list(model.controller.history)
    assert slots[0].latencies == ((80, ROWS),)
    assert quantile_of(slots, 0.99) == slots[0].p99
    assert quantile_of([], 0.5) is None
    again = Slot.from_json(slots[0].to_json())
    assert again == slots[0]


def test_the_history_reads_as_it_was_written(tmp_path):
    """Slots have shares that add up, latencies, hot keys and backlogs."""
    store = ControlStore(tmp_path)
    model = Model([1, 0.5], controller(2, store=store))
    model.run(3)
    slots = [Slot.from_json(line) for line in store.history()]
    assert list(model.controller.history) == slots
    assert 1 == pytest.approx(sum(worker.share for worker in slots[-1].workers))
    assert 7 / ROWS == slots[0].hot_keys[0].share
    assert 1.06 == pytest.approx(slots[0].p99, rel=0.06)
    assert slots[0].imbalance > slots[-1].imbalance
    fast, slow = (worker.backlog for worker in slots[0].workers)
    assert 0 == fast < slow, "the slow worker has messages left when the mean worker has none"
