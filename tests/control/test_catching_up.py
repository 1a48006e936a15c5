"""A restarted query is caught up when it has reached the offsets of its start."""

import json

import numpy as np

from steelyard.control.catching_up import CatchingUp
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion


def offsets(*reached):
    """Return offsets of the partitions of the topic of the only source, as Spark reports them."""
    return [json.dumps({"visits": {str(p): offset for p, offset in enumerate(reached)}})]


def repeating(folder):
    """Return a store whose query repeats batch 0, and the object that follows the offsets."""
    store = ControlStore(folder)
    store.prepare()
    store.publish(ControlVersion(1, None, np.zeros(4, np.int32)))
    for _ in range(2):
        store.pin_batch("query", 0)
    return store, CatchingUp(store)


def test_the_first_batch_of_a_run_names_the_goal(tmp_path):
    """Later messages do not matter: the interrupted batch cannot have read them."""
    store, catching_up = repeating(tmp_path)
    catching_up.finish_batch("query", "run", offsets(5, 3), offsets(5, 7))
    assert store.is_repeating("query")
    catching_up.finish_batch("query", "run", offsets(9, 6), offsets(20, 20))
    assert store.is_repeating("query")
    catching_up.finish_batch("query", "run", offsets(9, 7), offsets(30, 30))
    assert not store.is_repeating("query")


def test_a_new_run_has_a_new_goal(tmp_path):
    """A second interruption may have read more than the first."""
    store, catching_up = repeating(tmp_path)
    catching_up.finish_batch("query", "run", offsets(0), offsets(5))
    store.pin_batch("query", 0)
    catching_up.finish_batch("query", "next run", offsets(5), offsets(9))
    assert store.is_repeating("query")
    catching_up.finish_batch("query", "next run", offsets(9), offsets(9))
    assert not store.is_repeating("query")


def test_unknown_offsets_keep_the_version(tmp_path):
    """Without offsets, or with damaged ones, the query follows the old version."""
    store, catching_up = repeating(tmp_path)
    for latest in (None, "", "not JSON", "[]"):
        catching_up.finish_batch("query", "run", offsets(5), [latest])
    catching_up.finish_batch("query", "run", [None], offsets(5))
    assert store.is_repeating("query")


def test_a_query_without_interruption_writes_nothing(tmp_path):
    """Its batches follow the newest versions anyway."""
    store = ControlStore(tmp_path)
    store.prepare()
    store.pin_batch("query", 0)
    CatchingUp(store).finish_batch("query", "run", offsets(5), offsets(5))
    assert not (tmp_path / "caught-up").exists()
