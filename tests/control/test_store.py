"""The control path: versions, pins, the history and the owner."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.addresses import files_at
from steelyard.control.store import NO_VERSION, ControlStore, Pin
from steelyard.control.version import ControlVersion
from steelyard.plans import Planner
from tests.control.model import version


@pytest.fixture(params=["folder", "remote"])
def address(request, tmp_path):
    """A control path of each kind: on a disk, and on an object store."""
    return tmp_path if request.param == "folder" else request.getfixturevalue("remote")


def versions(address):
    """Return the numbers of all versions on a path."""
    return sorted(
        int(name.removesuffix(".json")) for name in files_at(address).list_folder("versions")
    )


def test_a_published_version_can_be_read(address):
    """The pin leads to the same plan and owners."""
    store = ControlStore(address)
    plan = Planner(4, buckets=16).update(np.arange(16) ** 3)
    store.publish(ControlVersion(1, plan, np.array([0, 0, 1, 1], np.int32)))
    found = ControlStore(address).pinned(store.pin_newest())
    assert found.matches(plan, np.array([0, 0, 1, 1], np.int32))
    assert found.fits(4, 16, 2)


def test_a_version_for_other_numbers_does_not_fit():
    """Another number of virtual workers, buckets or workers, or owners that do not exist."""
    plan = Planner(4, buckets=16).plan
    version = ControlVersion(1, plan, np.array([0, 0, 1, 1], np.int32))
    assert version.fits(4, 16, 2)
    for numbers in ((5, 16, 2), (4, 32, 2), (4, 16, 1)):
        assert not version.fits(*numbers)
    assert not ControlVersion(1, plan, np.array([0, 0, -1, 1], np.int32)).fits(4, 16, 2)


def test_a_path_without_versions_has_a_pin_too(address):
    """All tasks agree that there is no version."""
    store = ControlStore(address)
    assert NO_VERSION == store.pin_newest()
    assert store.pinned(NO_VERSION) is None
    assert store.newest() is None


def test_a_pin_does_not_change_when_versions_are_published(address):
    """All tasks of a micro-batch follow one version while the driver writes others."""
    store = ControlStore(address)
    store.publish(version(1))
    pin = store.pin_newest()
    for number in range(2, 9):
        store.publish(version(number))
    assert (1, 8) == (store.pinned(pin).number, store.newest().number)


def test_a_lost_version_is_an_error(address):
    """A task never follows another version instead, not even one with the same number."""
    store, files = ControlStore(address), files_at(address)
    store.publish(version(1))
    pin = store.pin_newest()
    files.replace("versions/000000001.json", version(1, bins=5).to_json())
    with pytest.raises(LookupError, match="version 1 is not in"):
        store.pinned(pin)
    files.delete("versions/000000001.json")
    with pytest.raises(LookupError, match="version 1 is not in"):
        store.pinned(pin)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[1, 2]", b'{"number": 2}'])
def test_a_damaged_version_is_skipped(tmp_path, damage):
    """Tasks follow the newest version that can be read."""
    store = ControlStore(tmp_path)
    store.publish(version(1))
    (tmp_path / "versions/000000002.json").write_bytes(damage)
    assert (2, 1) == (store.latest(), store.newest().number)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_a_pin_is_one_long(number, checksum):
    """Spark carries the pin as a signed 64-bit integer."""
    pin = Pin(number, checksum)
    assert pin == Pin.from_long(pin.to_long())
    assert 0 <= pin.to_long() < 2**63


@pytest.mark.parametrize("name", ["1763450000000.json", "9999999999.json", "7.json", "x.json"])
def test_files_that_are_not_versions_are_ignored(tmp_path, name):
    """They change no number of a version, and are not removed."""
    store = ControlStore(tmp_path)
    store.prepare()
    store.publish(version(1))
    (tmp_path / "versions" / name).write_text("{}")
    assert 1 == store.latest()
    store.publish(version(2))
    pin = store.pin_newest()
    assert 2 == store.pinned(Pin.from_long(pin.to_long())).number
    assert pin.to_long() < 2**63
    assert (tmp_path / "versions" / name).exists()


def test_the_newest_versions_are_kept(address):
    """A micro-batch that pinned one of them can read it."""
    store = ControlStore(address)
    for number in range(1, 31):
        store.publish(version(number))
        assert number == store.latest()
    assert list(range(23, 31)) == versions(address)


def test_the_history_has_a_limited_length(address, monkeypatch):
    """The newest lines are kept, also those of earlier stores."""
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES", 5)
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES_REWRITTEN", 5)
    for number in range(23):
        if number % 7 == 0:
            store = ControlStore(address)
        store.add_history(str(number))
        lines = store.history()
        assert [str(n) for n in range(number + 1)][-len(lines) :] == lines
        assert min(number + 1, 5) <= len(lines) <= 10


def test_a_truncated_line_does_not_damage_the_next_line(address):
    """A driver was killed while it wrote a line; the lines of the next driver can be read."""
    ControlStore(address).add_history("1")
    files = files_at(address)
    files.replace("history.jsonl", files.read_text("history.jsonl") + '{"cut')
    store = ControlStore(address)
    for line in ("2", "3"):
        store.add_history(line)
    assert ["1", "2", "3"] == store.history()


def test_lines_that_are_not_text_are_skipped(tmp_path):
    (tmp_path / "history.jsonl").write_bytes(b"1\n\xff\xfe\n2\n")
    assert ["1", "2"] == ControlStore(tmp_path).history()


def test_a_second_query_is_rejected(address):
    """The message says what to do, without secrets. The first query may claim and release again."""
    store = ControlStore(address)
    assert "" == store.owner()
    store.claim("first")
    store.claim("first")
    assert "first" == store.owner()
    with pytest.raises(
        ValueError, match="in use by the query first; give each query a path"
    ) as raised:
        store.claim("second")
    assert "secret" not in str(raised.value)
    store.release("second")
    with pytest.raises(ValueError, match="remove the file"):
        store.claim("second")
    store.release("first")
    store.claim("second")


def test_the_learned_state_and_drained_workers_are_saved(address):
    """Files that do not exist or cannot be read count as empty."""
    store, files = ControlStore(address), files_at(address)
    store.prepare()
    assert store.learned() is None
    assert set() == store.drained()
    assert [] == store.history()
    store.save_learned({"slots": 3})
    store.drain([2, 1, 2])
    store.add_history("{}")
    files.replace("history.jsonl", files.read_text("history.jsonl") + '{"cut')
    assert {"slots": 3} == store.learned()
    assert {1, 2} == store.drained()
    assert ["{}"] == store.history()
    files.replace("learned.json", "[1]")
    files.replace("drained.json", "oh")
    assert store.learned() is None
    assert set() == store.drained()


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"", b"\n"])
def test_a_damaged_owner_is_replaced(tmp_path, damage):
    """It names no query. Later queries are rejected as usual."""
    store = ControlStore(tmp_path)
    (tmp_path / "owner").write_bytes(damage)
    store.claim("first")
    assert "first" == store.owner()
    with pytest.raises(ValueError, match="in use by the query first"):
        store.claim("second")


def test_malformed_drained_workers_are_ignored(tmp_path):
    for text in ("5", '["a"]', "[[1]]", "null", json.dumps([2, 3])):
        (tmp_path / "drained.json").write_text(text)
        found = ControlStore(tmp_path).drained()
    assert {2, 3} == found
