"""Owners of virtual workers, from moves and from what slots tell now and then."""

import numpy as np
from hypothesis import given

from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.dashboard.owners import Ownership
from tests.dashboard.model import controlled, histories, slot


@given(histories())
def test_every_virtual_worker_has_one_owner_in_every_slot(history):
    """As many as the slot says that each worker has, whatever was told."""
    slots, _ = history
    owners = Ownership(slots)
    for place, told in enumerate(slots):
        blocks = owners.at(place)
        counts = [worker.virtual_workers for worker in told.workers]
        assert counts == np.bincount(blocks.owners, minlength=len(counts)).tolist()
        assert sum(counts) == blocks.owners.size == blocks.takers.size


@given(histories())
def test_owners_told_once_are_known_in_all_slots(history):
    """Before that, by moves taken back; after it, by moves."""
    slots, expected = history
    if any(told.owners for told in slots):
        owners = Ownership(slots)
        assert expected == [owners.at(place).owners.tolist() for place in range(len(slots))]


@given(histories())
def test_moves_lead_from_one_slot_to_the_next(history):
    """Who leaves in a slot has come in the next, to the one that takes it."""
    slots, _ = history
    owners = Ownership(slots)
    for place in range(len(slots) - 1):
        here, then = owners.at(place), owners.at(place + 1)
        leaving = here.takers >= 0
        assert leaving.tolist() == then.came.tolist()
        assert here.takers[leaving].tolist() == then.owners[leaving].tolist()
        assert (then.since[then.came] == place + 1).all()


def test_the_history_leads_to_the_published_owners(tmp_path):
    """What a real controller wrote, replayed, is the version that its sources follow."""
    store = ControlStore(tmp_path)
    controlled(store, 9)
    slots = [Slot.from_json(line) for line in store.history()]
    assert any(told.moves for told in slots)
    assert [bool(told.owners) for told in slots] == [True] + [False] * 8
    last = Ownership(slots).at(8)
    after = np.where(last.takers >= 0, last.takers, last.owners)
    assert store.newest().owners.tolist() == after.tolist()


def test_owners_are_told_again_so_that_a_cut_history_knows_them(tmp_path):
    """Every fifty slots, and by the first slot after a restart."""
    store = ControlStore(tmp_path)
    controlled(store, 102)
    controlled(store, 2)
    slots = [Slot.from_json(line) for line in store.history()]
    assert [1, 50, 100, 103] == [told.slot for told in slots if told.owners]
    whole, cut = Ownership(slots), Ownership(slots[70:])
    assert whole.at(80).owners.tolist() == cut.at(10).owners.tolist()


def test_other_workers_and_lost_lines_begin_anew():
    """After a gap, or with another number of workers, counts tell what they can."""
    slots = [slot(1, [2, 2], moves=[(0, 0, 1)]), slot(5, [3, 1]), slot(6, [1, 1, 1])]
    owners = Ownership(slots)
    assert [0, 0, 1, 1] == owners.at(0).owners.tolist()
    assert [0, 0, 0, 1] == owners.at(1).owners.tolist()
    assert [0, 1, 2] == owners.at(2).owners.tolist()
    assert not owners.at(2).came.any()


def test_what_is_told_wins_over_what_moves_led_to():
    """A controller that started anew told its owners."""
    slots = [slot(1, [2, 2], owners=[0, 0, 1, 1]), slot(2, [2, 2], owners=[1, 1, 0, 0])]
    assert [1, 1, 0, 0] == Ownership(slots).at(1).owners.tolist()


def test_moves_of_what_is_not_there_are_left_out():
    """A damaged line does no harm."""
    slots = [slot(1, [1, 1], moves=[(7, 0, 1), (0, 0, 9)]), slot(2, [1, 1])]
    assert [0, 1] == Ownership(slots).at(1).owners.tolist()
