"""Owners of virtual workers, from moves and from the owners that some slots record."""

import numpy as np
from hypothesis import given

from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.dashboard.owners import Ownership
from tests.dashboard.model import controlled, histories, slot


@given(histories())
def test_every_virtual_worker_has_one_owner_in_every_slot(history):
    """The number of virtual workers of each worker agrees with the slot."""
    slots, _ = history
    owners = Ownership(slots)
    for place, known in enumerate(slots):
        blocks = owners.at(place)
        counts = [worker.virtual_workers for worker in known.workers]
        assert counts == np.bincount(blocks.owners, minlength=len(counts)).tolist()
        assert sum(counts) == blocks.owners.size == blocks.takers.size


@given(histories())
def test_owners_recorded_once_are_known_in_all_slots(history):
    """Moves lead from the recorded owners to those of earlier and later slots."""
    slots, expected = history
    if any(known.owners for known in slots):
        owners = Ownership(slots)
        assert expected == [owners.at(place).owners.tolist() for place in range(len(slots))]


@given(histories())
def test_moves_lead_from_one_slot_to_the_next(history):
    """A virtual worker that leaves in a slot belongs to its taker in the next slot."""
    slots, _ = history
    owners = Ownership(slots)
    for place in range(len(slots) - 1):
        here, then = owners.at(place), owners.at(place + 1)
        leaving = here.takers >= 0
        assert leaving.tolist() == then.came.tolist()
        assert here.takers[leaving].tolist() == then.owners[leaving].tolist()
        assert (then.since[then.came] == place + 1).all()


def test_the_history_leads_to_the_published_owners(tmp_path):
    """The replayed history of a real controller agrees with its newest version."""
    store = ControlStore(tmp_path)
    controlled(store, 9)
    slots = [Slot.from_json(line) for line in store.history()]
    assert any(known.moves for known in slots)
    assert [bool(known.owners) for known in slots] == [True] + [False] * 8
    last = Ownership(slots).at(8)
    after = np.where(last.takers >= 0, last.takers, last.owners)
    assert store.newest().owners.tolist() == after.tolist()


def test_owners_are_recorded_again_for_a_truncated_history(tmp_path):
    """Every fiftieth slot and the first slot after a restart record them."""
    store = ControlStore(tmp_path)
    controlled(store, 102)
    controlled(store, 2)
    slots = [Slot.from_json(line) for line in store.history()]
    assert [1, 50, 100, 103] == [known.slot for known in slots if known.owners]
    whole, cut = Ownership(slots), Ownership(slots[70:])
    assert whole.at(80).owners.tolist() == cut.at(10).owners.tolist()


def test_owners_follow_the_counts_after_a_gap_or_with_other_workers():
    slots = [slot(1, [2, 2], moves=[(0, 0, 1)]), slot(5, [3, 1]), slot(6, [1, 1, 1])]
    owners = Ownership(slots)
    assert [0, 0, 1, 1] == owners.at(0).owners.tolist()
    assert [0, 0, 0, 1] == owners.at(1).owners.tolist()
    assert [0, 1, 2] == owners.at(2).owners.tolist()
    assert not owners.at(2).came.any()


def test_recorded_owners_win_over_moves():
    """A restarted controller records its owners."""
    slots = [slot(1, [2, 2], owners=[0, 0, 1, 1]), slot(2, [2, 2], owners=[1, 1, 0, 0])]
    assert [1, 1, 0, 0] == Ownership(slots).at(1).owners.tolist()


def test_impossible_moves_of_a_damaged_line_are_ignored():
    slots = [slot(1, [1, 1], moves=[(7, 0, 1), (0, 0, 9)]), slot(2, [1, 1])]
    assert [0, 1] == Ownership(slots).at(1).owners.tolist()
