"""The plan of a batch of a real-time query, as the query reads it."""

import numpy as np
import pytest

from steelyard.control import store as store_module
from steelyard.control.definition import Definition
from steelyard.control.store import ControlStore, Pin
from steelyard.control.version import ControlVersion
from steelyard.executor import real_time_plan
from steelyard.executor.real_time_plan import PlanChoice
from steelyard.executor.task_context import MicroBatch
from steelyard.hashing import spread
from steelyard.plans import Planner

WORKERS, VIRTUAL, BUCKETS = 3, 30, 64


def choice(folder, **given):
    """Prepare a control path, and return a choice that follows it."""
    store = ControlStore(folder)
    store.prepare()
    settings = {
        "path": str(folder),
        "identity": store.identity,
        "workers": WORKERS,
        "virtual_workers": VIRTUAL,
        "buckets": BUCKETS,
        "definition": Definition(placement="real-time"),
    }
    return store, PlanChoice(**(settings | given))


def version(number, owners):
    """Return a version with a plan that splits bucket 0."""
    plan = Planner(VIRTUAL, buckets=BUCKETS).update([1000.0] + [10.0] * (BUCKETS - 1))
    return ControlVersion(number, plan, owners.astype(np.int32))


def looked_up(entries, steps, bucket, salt):
    """Find the worker of a message as the expression of the query does."""
    entry, place = entries[bucket], int(salt) >> 32 & 0xFFFFFFFF
    if entry >= 0:
        return entries[entry]
    at = ~entry
    for _ in range(steps):
        at = (entries[at] + place) >> 32
    return entries[at]


def test_the_table_leads_to_the_owners(tmp_path):
    """A message reaches the owner of the virtual worker that the plan chooses for its bucket."""
    owners = np.random.default_rng(0).integers(0, WORKERS, VIRTUAL)
    store, chosen = choice(tmp_path)
    store.publish(version(1, owners))
    pin, entries = chosen.choose("query", 0)
    assert 1 == pin.number
    plan = version(1, owners).plan.for_owners(owners, WORKERS)
    buckets, salts = np.arange(1000) % BUCKETS, spread(np.arange(1000))
    found = [looked_up(entries, chosen.steps, b, s) for b, s in zip(buckets, salts, strict=True)]
    assert plan.route(buckets, salts).tolist() == found


def test_without_a_version_every_bucket_has_one_worker(tmp_path):
    """Before the first plan, buckets are at their first choice; a version may not fit."""
    store, chosen = choice(tmp_path)
    first = chosen.choose("query", 0)[1]
    assert set(range(WORKERS)) == {looked_up(first, chosen.steps, b, 0) for b in range(BUCKETS)}
    store.publish(ControlVersion(1, None, np.zeros(VIRTUAL + 1, np.int32)))
    assert first == chosen.choose("query", 1)[1]


def test_a_repeated_batch_gets_the_same_table(tmp_path):
    """A newer version does not change the plan of a batch that began before."""
    store, chosen = choice(tmp_path)
    store.publish(version(1, np.arange(VIRTUAL) % WORKERS))
    before = chosen.choose("query", 0)
    store.publish(version(2, np.zeros(VIRTUAL)))
    assert before == chosen.choose("query", 0)


def test_a_key_has_parts_at_several_workers(tmp_path):
    """With two parts, half of the messages of a light bucket go to another virtual worker."""
    store, chosen = choice(tmp_path, virtual_workers=WORKERS, parts=2)
    plan = Planner(WORKERS, buckets=BUCKETS).update([10.0] * BUCKETS)
    store.publish(ControlVersion(1, plan, np.arange(WORKERS, dtype=np.int32)))
    for number in range(2):
        entries = chosen.choose("query", number)[1]
        for bucket in range(BUCKETS):
            salts = spread(np.arange(100))
            found = [looked_up(entries, chosen.steps, bucket, salt) for salt in salts]
            assert 2 == len(set(found))
        store.publish(ControlVersion(2, None, np.arange(WORKERS, dtype=np.int32)))


def answer(chosen, monkeypatch, query="query", batch=0):
    """Return the row that the function gives to Spark."""
    monkeypatch.setattr(real_time_plan, "micro_batch", lambda: MicroBatch(query, batch, 0))
    (row,) = [row for part in chosen([]) for row in part.to_pylist()]
    return row


def test_the_row_has_the_pin_and_the_entries(tmp_path, monkeypatch):
    """Spark gets one row without a failure."""
    store, chosen = choice(tmp_path)
    store.publish(version(1, np.zeros(VIRTUAL)))
    row = answer(chosen, monkeypatch)
    assert 1 == Pin.from_long(row["pin"]).number
    assert (None, {0}) == (row["failure"], {row["entries"][row["entries"][b]] for b in range(1, 9)})


@pytest.mark.parametrize("case", ["folder", "owner", "definition", "version"])
def test_a_failure_is_part_of_the_row(tmp_path, monkeypatch, case):
    """The query raises the error, because Spark would hide one of a subquery."""
    store, chosen = choice(tmp_path)
    store.publish(version(1, np.zeros(VIRTUAL)))
    answer(chosen, monkeypatch)
    query, batch, sentence = "query", 1, ""
    if case == "folder":
        chosen, sentence = choice(tmp_path, identity="other")[1], "is not the one that the driver"
    elif case == "owner":
        query, sentence = "another", "is in use by the query query"
    elif case == "definition":
        other = Definition(placement="real-time", keys=("page string",))
        chosen, sentence = choice(tmp_path, definition=other)[1], "a query with the keys none"
    else:
        (tmp_path / "versions" / "000000001.json").unlink()
        batch, sentence = 0, "version 1 is not in"
        store_module._version_at.cache_clear()  # a restarted query is another process
    row = answer(chosen, monkeypatch, query, batch)
    assert row["failure"].startswith("control: ") or case == "definition"
    assert sentence in row["failure"]
    assert row["entries"] is None
