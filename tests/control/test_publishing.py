"""Versions that are published, and a control path that cannot be written."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.publishing import Publisher
from steelyard.control.store import ControlStore
from steelyard.dashboard.simulated import quiet_slot


def owned_by(worker):
    """Four virtual workers of one worker."""
    return np.full(4, worker, np.int32)


@given(st.lists(st.integers(0, 2), min_size=1))
def test_the_number_grows_with_every_change_and_never_without(workers):
    """A number names one plan and one assignment."""
    publisher = Publisher(None)
    numbers = [publisher.publish(None, owned_by(worker)).number for worker in workers]
    changes = [now != before for before, now in pairwise(workers)]
    assert [1, *(1 + np.cumsum(changes, dtype=int)).tolist()] == numbers
    assert publisher.version.matches(None, owned_by(workers[-1]))


def test_numbers_go_on_after_those_on_the_path(tmp_path):
    """Also if another process has published meanwhile, or a version was lost."""
    first, second = (Publisher(ControlStore(tmp_path)) for _ in range(2))
    numbers = [
        publisher.publish(None, owned_by(worker)).number
        for publisher, worker in ((first, 0), (second, 1), (first, 0), (second, 2))
    ]
    assert [1, 2, 3, 4] == numbers
    for path in (tmp_path / "versions").iterdir():
        path.unlink()
    assert 5 == second.publish(None, owned_by(2)).number == second.store.latest()


def test_a_version_that_fits_is_continued(tmp_path):
    """Otherwise a new one is published, unless a query uses the path."""
    store = ControlStore(tmp_path)
    Publisher(store).begin(None, None, owned_by(0))
    same, other, refused = (Publisher(store) for _ in range(3))
    same.begin(same.newest(), None, owned_by(0))
    assert 1 == same.number
    other.begin(other.newest(), None, owned_by(1))
    assert 2 == other.number
    store.claim("a query")
    refused.begin(refused.newest(), None, owned_by(2))
    assert (None, 0) == (refused.version, refused.number)
    assert 2 == store.latest()


def test_each_failure_is_logged_once_until_it_is_over(tmp_path, caplog):
    """Slots go on in memory; the next failure after a success is logged again."""
    publisher = Publisher(ControlStore(tmp_path))
    in_the_way = tmp_path / "learned.json"
    for slot in range(1, 9):
        if slot in (1, 5):
            in_the_way.unlink(missing_ok=True)
            in_the_way.mkdir()
        if slot == 4:
            in_the_way.rmdir()
        publisher.record(quiet_slot(slot, [2]), {"slots": slot})
    assert 2 == caplog.text.count("the file learned.json cannot be written")
    assert list(range(1, 9)) == [slot.slot for slot in publisher.history]
    assert 8 == len(publisher.store.history())
