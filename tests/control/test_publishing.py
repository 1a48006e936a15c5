"""Publishing versions, also to a control path that cannot be written."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.publishing import Publisher
from steelyard.control.store import ControlStore
from steelyard.dashboard.simulated import quiet_slot


def owned_by(worker):
    """Return the owners of four virtual workers of one worker."""
    return np.full(4, worker, np.int32)


@given(st.lists(st.integers(0, 2), min_size=1))
def test_the_number_increases_exactly_with_every_change(workers):
    """A number identifies one plan and one assignment."""
    publisher = Publisher(None)
    numbers = [publisher.publish(None, owned_by(worker)).number for worker in workers]
    changes = [now != before for before, now in pairwise(workers)]
    assert [1, *(1 + np.cumsum(changes, dtype=int)).tolist()] == numbers
    assert publisher.version.matches(None, owned_by(workers[-1]))


def test_numbers_continue_after_those_on_the_path(tmp_path):
    """The next number is free even if another process published a version or a version was lost."""
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
    """Otherwise a new version is published, unless a query uses the path."""
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


def test_only_the_first_of_several_failures_is_logged(tmp_path, caplog):
    """Slots are still kept in memory. A failure after a success is logged again."""
    publisher = Publisher(ControlStore(tmp_path))
    obstacle = tmp_path / "learned.json"
    for slot in range(1, 9):
        if slot in (1, 5):
            obstacle.unlink(missing_ok=True)
            obstacle.mkdir()
        if slot == 4:
            obstacle.rmdir()
        publisher.record(quiet_slot(slot, [2]), {"slots": slot})
    assert 2 == caplog.text.count("the file learned.json cannot be written")
    assert list(range(1, 9)) == [slot.slot for slot in publisher.history]
    assert 8 == len(publisher.store.history())
