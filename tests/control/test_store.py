"""The control path: versions, pins, one query at a time, and folders that vanish."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from steelyard.control.files import files_at
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.planning import Planner


@pytest.fixture(params=["folder", "remote"])
def address(request, tmp_path):
    """A control path of each kind: files can be linked, or not."""
    return tmp_path if request.param == "folder" else request.getfixturevalue("remote")


def version(number, bins=4):
    """A version whose owners tell its number."""
    return ControlVersion(number, None, np.full(bins, number, np.int32))


def pinned(store, query, batch):
    """The number of the version; 0 is none."""
    found = store.pin(query, batch)
    return 0 if found is None else found.number


def test_a_version_comes_back_as_it_was(address):
    """Plan and owners; what cannot be read counts as lost."""
    store = ControlStore(address)
    plan = Planner(4, buckets=16).update(np.arange(16) ** 3)
    store.publish(ControlVersion(1, plan, np.array([0, 0, 1, 1], np.int32)))
    found = store.read(1)
    assert found.says(plan, np.array([0, 0, 1, 1], np.int32))
    assert found.fits(4, 16)
    assert not found.fits(4, 32)
    assert not found.fits(5, 16)
    files_at(address).write("versions/000000001.json", "{")
    assert store.read(1) is None
    assert store.read(2) is None


def test_a_pin_holds_whatever_is_published_later(tmp_path):
    """All tasks of a batch, its retries and replays, use one version."""
    store = ControlStore(tmp_path)
    assert 0 == pinned(store, "q", 0)
    store.publish(version(1))
    assert (0, 1) == (pinned(store, "q", 0), pinned(store, "q", 1))
    store.publish(version(2))
    assert (0, 1, 2) == tuple(pinned(store, "q", batch) for batch in range(3))
    assert 2 == pinned(store, "another", 0)
    assert store.is_pinned("q", 2)
    assert not store.is_pinned("q", 3)


def test_many_who_pin_at_once_agree(tmp_path):
    """While versions are being published."""
    store = ControlStore(tmp_path)

    def pin_all(_):
        return [pinned(ControlStore(tmp_path), "q", batch) for batch in range(30)]

    def publish(number):
        store.publish(version(number))

    with ThreadPoolExecutor(8) as pool:
        pins = [pool.submit(pin_all, i) for i in range(6)]
        list(pool.map(publish, range(1, 40)))
    assert 1 == len({tuple(pinned.result()) for pinned in pins})


def test_a_vanished_folder_is_made_again(tmp_path):
    """Nothing fails when somebody removes all of it in between."""
    store = ControlStore(tmp_path / "control")
    store.prepare()
    with ThreadPoolExecutor(4) as pool:
        pins = [pool.submit(pinned, store, "q", batch) for batch in range(200)]
        for number in range(1, 50):
            store.publish(version(number))
            shutil.rmtree(tmp_path / "control", ignore_errors=True)
            store.add_history("{}")
        assert all(pinned.result() >= 0 for pinned in pins)
    store.publish(version(50))
    assert 50 == store.latest()


def test_a_folder_that_vanishes_while_it_is_made(tmp_path, monkeypatch):
    """`mkdir` then says that a file is in the way; it is tried again."""
    store = ControlStore(tmp_path / "control")
    troubles = [FileExistsError("vanished"), FileNotFoundError("vanished too")]
    make = Path.mkdir

    def mkdir(path, *args, **options):
        if troubles:
            raise troubles.pop()
        make(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert 0 == pinned(store, "q", 1)
    assert not troubles


def test_old_versions_and_pins_are_removed(tmp_path):
    """The newest stay, and those that a micro-batch uses, however long it takes."""
    store = ControlStore(tmp_path)
    for number in range(1, 11):
        store.publish(version(number))
        store.pin("q", number)
    store.pin("old query", 1)
    store.forget_pins("q", done=10)
    assert ["10"] == [p.name for p in (tmp_path / "pins/q").iterdir()]
    assert not (tmp_path / "pins" / "old query").exists()
    for number in range(11, 21):
        store.publish(version(number))
    assert ["000000020.json"] == [path.name for path in (tmp_path / "versions").iterdir()]
    assert (20, 20) == (store.latest(), store.newest().number)
    shutil.rmtree(tmp_path / "versions")
    assert [10] * 4 == store.pin("q", 10).owners.tolist()


def test_versions_that_nobody_can_pin_are_kept_for_a_while(remote):
    """A micro-batch that has asked for one finds it, whatever is published meanwhile."""
    store = ControlStore(remote)
    assert not store.can_pin
    for number in range(1, 31):
        store.publish(version(number))
        assert number == store.latest()
    assert [15, 30] == [store.read(15).number, store.newest().number]
    assert store.read(14) is None
    with pytest.raises(TypeError, match="nothing can be pinned on s3://steelyard/"):
        store.pin("q", 0)


def test_the_history_does_not_grow_for_ever(address, monkeypatch):
    """The newest lines stay, whoever wrote them."""
    monkeypatch.setattr("steelyard.control.store._HISTORY", 5)
    monkeypatch.setattr("steelyard.control.store._REWRITTEN", 5)
    for number in range(23):
        if number % 7 == 0:
            store = ControlStore(address)
        store.add_history(str(number))
        lines = store.history()
        assert [str(n) for n in range(number + 1)][-len(lines) :] == lines
        assert min(number + 1, 5) <= len(lines) <= 10


def test_a_second_query_is_refused(address):
    """In a sentence that says what to do, and no secrets; the first may come again, or leave."""
    store = ControlStore(address)
    assert not store.is_claimed
    store.claim("first")
    store.claim("first")
    assert store.is_claimed
    with pytest.raises(
        ValueError, match="in use by the query first; give each query a path"
    ) as told:
        store.claim("second")
    assert "secret" not in str(told.value)
    store.release("second")
    with pytest.raises(ValueError, match="remove the file"):
        store.claim("second")
    store.release("first")
    store.claim("second")


@pytest.mark.parametrize("path", ["http://me:secret@host/control", "file://host/a", "dbfs:/a"])
def test_other_file_systems_are_refused(path):
    """In a sentence that names those that are not."""
    with pytest.raises(ValueError, match=r"a shared mount .*s3://, gs://, .* hdfs://") as told:
        ControlStore(path)
    assert "secret" not in str(told.value)


def test_a_store_that_is_not_there_is_refused(bucket):
    """Before any work starts: nobody listens, or there is no such bucket."""
    for address in (
        bucket.format("x").replace("@steelyard/", "@nowhere/"),
        "s3://a:b@c/d?endpoint_override=127.0.0.1:1&scheme=http&region=us-east-1",
    ):
        with pytest.raises(ValueError, match=r"control: .*s3://\w+/\w cannot be"):
            ControlStore(address).prepare()


def test_a_file_address_is_a_path(tmp_path):
    """With or without a host, spaces and all."""
    assert ControlStore(f"file://{tmp_path}/a%20b").address == str(tmp_path / "a b")
    assert ControlStore(tmp_path).address == str(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    """Before any work starts."""
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        ControlStore(tmp_path / "file" / "control").prepare()


def test_what_was_learned_and_drained_is_remembered(address):
    """And what nobody wrote, or nobody can read, is nothing."""
    store, files = ControlStore(address), files_at(address)
    store.prepare()
    assert store.learned() is None
    assert set() == store.drained()
    assert [] == store.history()
    store.save_learned({"slots": 3})
    store.drain([2, 1, 2])
    store.add_history("{}")
    files.write("history.jsonl", files.read("history.jsonl") + '{"cut')
    assert {"slots": 3} == store.learned()
    assert {1, 2} == store.drained()
    assert ["{}"] == store.history()
    files.write("learned.json", "[1]")
    files.write("drained.json", "oh")
    assert store.learned() is None
    assert set() == store.drained()
