"""A repeated batch follows the version of its first attempt."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.batch_pins import BatchPins
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion


def test_every_batch_follows_the_newest_version():
    """Without an interruption, a batch follows the version that is the newest when it begins."""
    pins = BatchPins()
    for batch, newest in enumerate([5, 5, 6, 9]):
        pins = pins.begin(batch, newest)
        assert newest == pins.current


def test_a_repeated_batch_follows_its_first_version():
    """The version of the first attempt is used although a newer one exists."""
    pins = BatchPins().begin(0, newest=1).begin(1, newest=2)
    assert 2 == pins.begin(1, newest=3).current


def test_the_version_stays_until_the_query_has_caught_up():
    """Batches after a repeated one follow its version, until all of its messages were read."""
    pins = BatchPins().begin(0, newest=1).begin(0, newest=2)
    assert 1 == pins.begin(1, newest=3).begin(2, newest=4).current
    assert 5 == pins.begin(1, newest=5, caught_up=pins.restarts).current


def test_the_last_two_batches_can_be_repeated():
    """If the end of the batch before was not on disk yet, each batch keeps its own version."""
    pins = BatchPins().begin(0, newest=1).begin(1, newest=2)
    again = pins.begin(0, newest=9)
    assert 1 == again.current
    assert again.is_held


def test_a_second_interruption_needs_another_catching_up():
    """Catching up before the second interruption does not count after it."""
    once = BatchPins().begin(0, newest=1).begin(0, newest=2)
    twice = once.begin(1, newest=3, caught_up=1).begin(1, newest=4, caught_up=1)
    assert 2 == twice.restarts
    assert 3 == twice.begin(2, newest=5, caught_up=1).current


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), max_size=30))
def test_pins_survive_their_text(steps):
    """The text of pins gives the same pins, whatever has happened."""
    pins, batch = BatchPins(), 0
    for is_repeated, newest in steps:
        batch = batch if is_repeated else batch + 1
        pins = pins.begin(batch, newest)
        assert pins == BatchPins.from_json(pins.to_json())


@pytest.mark.parametrize("text", ["", "[]", "[[[1]], 0, false]", '{"pins": 1}'])
def test_other_text_is_refused(text):
    """A damaged file is an error: another version would count messages twice."""
    with pytest.raises(ValueError, match="not the pins of batches"):
        BatchPins.from_json(text)


def test_a_store_keeps_pins_for_the_next_process(tmp_path):
    """A new process finds the version of the interrupted batch, also after a newer version."""
    store = ControlStore(tmp_path)
    store.prepare()
    store.publish(ControlVersion(1, None, np.zeros(4, np.int32)))
    first = store.pin_batch("query", 0)
    store.publish(ControlVersion(2, None, np.ones(4, np.int32)))
    assert not store.is_repeating("query")
    assert first == ControlStore(tmp_path).pin_batch("query", 0)
    assert store.is_repeating("query")
    store.set_caught_up("query")
    assert not store.is_repeating("query")
    assert 2 == store.pin_batch("query", 1).number
