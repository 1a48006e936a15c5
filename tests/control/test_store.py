"""The control path: versions, pins, one query at a time, and files that somebody else made."""

import errno
import json
import os
import shutil
import stat
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.files import files_at, without_secrets
from steelyard.control.store import NO_VERSION, ControlStore, Pin
from steelyard.control.version import ControlVersion
from steelyard.plans import Planner


@pytest.fixture(params=["folder", "remote"])
def address(request, tmp_path):
    """A control path of each kind: files can be linked, or not."""
    return tmp_path if request.param == "folder" else request.getfixturevalue("remote")


def version(number, bins=4):
    """A version whose owners tell its number."""
    return ControlVersion(number, None, np.full(bins, number, np.int32))


def versions(address):
    """The numbers of the versions that are there."""
    return sorted(int(name.removesuffix(".json")) for name in files_at(address).names("versions"))


def test_a_version_comes_back_as_it_was(address):
    """Plan and owners, under a pin that names this content."""
    store = ControlStore(address)
    plan = Planner(4, buckets=16).update(np.arange(16) ** 3)
    store.publish(ControlVersion(1, plan, np.array([0, 0, 1, 1], np.int32)))
    found = ControlStore(address).pinned(store.pin_newest())
    assert found.says(plan, np.array([0, 0, 1, 1], np.int32))
    assert found.fits(4, 16, 2)


def test_a_version_for_other_numbers_does_not_fit():
    """Another number of virtual workers, buckets or workers, or owners that do not exist."""
    plan = Planner(4, buckets=16).plan
    version = ControlVersion(1, plan, np.array([0, 0, 1, 1], np.int32))
    assert version.fits(4, 16, 2)
    for numbers in ((5, 16, 2), (4, 32, 2), (4, 16, 1)):
        assert not version.fits(*numbers)
    assert not ControlVersion(1, plan, np.array([0, 0, -1, 1], np.int32)).fits(4, 16, 2)


def test_without_a_version_there_is_nothing_to_follow(address):
    """Which is a pin too: all tasks agree on it."""
    store = ControlStore(address)
    assert NO_VERSION == store.pin_newest()
    assert store.pinned(NO_VERSION) is None
    assert store.newest() is None


def test_a_pin_holds_whatever_is_published_later(address):
    """All tasks of a micro-batch follow one version while the driver writes others."""
    store = ControlStore(address)
    store.publish(version(1))
    pin = store.pin_newest()
    for number in range(2, 9):
        store.publish(version(number))
    assert (1, 8) == (store.pinned(pin).number, store.newest().number)


def test_a_pin_that_is_not_there_is_an_error(address):
    """Lost, or another version of the same number: never another version instead."""
    store, files = ControlStore(address), files_at(address)
    store.publish(version(1))
    pin = store.pin_newest()
    files.write("versions/000000001.json", version(1, bins=5).to_json())
    with pytest.raises(LookupError, match="version 1 is not in"):
        store.pinned(pin)
    files.remove("versions/000000001.json")
    with pytest.raises(LookupError, match="version 1 is not in"):
        store.pinned(pin)


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b"[1, 2]", b'{"number": 2}'])
def test_a_damaged_version_is_passed_over(tmp_path, damage):
    """The newest one that can be read is followed."""
    store = ControlStore(tmp_path)
    store.publish(version(1))
    (tmp_path / "versions/000000002.json").write_bytes(damage)
    assert (2, 1) == (store.latest(), store.newest().number)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))
def test_a_pin_is_one_long(number, checksum):
    """Which Spark carries: a signed number of 64 bits."""
    pin = Pin(number, checksum)
    assert pin == Pin.from_long(pin.to_long())
    assert 0 <= pin.to_long() < 2**63


def test_a_vanished_folder_is_made_again(tmp_path):
    """Nothing fails when somebody removes all of it in between."""
    store = ControlStore(tmp_path / "control")
    store.prepare()
    with ThreadPoolExecutor(4) as pool:
        pins = [pool.submit(store.pin_newest) for _ in range(200)]
        for number in range(1, 50):
            store.publish(version(number))
            shutil.rmtree(tmp_path / "control", ignore_errors=True)
            store.add_history("{}")
        assert all(pin.result().number >= 0 for pin in pins)
    store.publish(version(50))
    store.keep_identity()
    assert 50 == store.latest()
    assert ControlStore(tmp_path / "control").is_identified_by(store.identity)


def test_a_folder_that_vanishes_while_it_is_made(tmp_path, monkeypatch):
    """The step is tried again, whether the folder or a file is in the way."""
    store = ControlStore(tmp_path / "control")
    troubles = [
        FileExistsError(errno.EEXIST, "vanished"),
        FileNotFoundError(errno.ENOENT, "vanished"),
    ]
    replace = os.replace

    def troubled(*args, **options):
        if troubles:
            raise troubles.pop()
        replace(*args, **options)

    monkeypatch.setattr(os, "replace", troubled)
    store.publish(version(1))
    assert not troubles
    assert ["000000001.json"] == [path.name for path in (tmp_path / "control/versions").iterdir()]


def test_the_newest_versions_are_kept(address):
    """A micro-batch that pinned one of them finds it."""
    store = ControlStore(address)
    for number in range(1, 31):
        store.publish(version(number))
        assert number == store.latest()
    assert list(range(23, 31)) == versions(address)


def test_another_folder_of_the_same_name_is_recognized(tmp_path):
    """By a random text that the driver's folder has, and keeps."""
    here, there = ControlStore(tmp_path / "here"), ControlStore(tmp_path / "there")
    here.prepare()
    assert not there.is_identified_by(here.identity)
    there.prepare()
    assert not there.is_identified_by(here.identity)
    again = ControlStore(tmp_path / "here")
    again.prepare()
    assert here.identity == again.identity
    assert ControlStore(tmp_path / "here").is_identified_by(here.identity)


def test_the_history_does_not_grow_for_ever(address, monkeypatch):
    """The newest lines stay, whoever wrote them."""
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES", 5)
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES_REWRITTEN", 5)
    for number in range(23):
        if number % 7 == 0:
            store = ControlStore(address)
        store.add_history(str(number))
        lines = store.history()
        assert [str(n) for n in range(number + 1)][-len(lines) :] == lines
        assert min(number + 1, 5) <= len(lines) <= 10


def test_a_line_that_was_cut_off_takes_no_other_with_it(address):
    """A driver that died while it wrote one: what the next driver writes can be read."""
    ControlStore(address).add_history("1")
    files = files_at(address)
    files.write("history.jsonl", files.read("history.jsonl") + '{"cut')
    store = ControlStore(address)
    for line in ("2", "3"):
        store.add_history(line)
    assert ["1", "2", "3"] == store.history()


def test_lines_that_are_not_text_are_left_out(tmp_path):
    """Those before and after them are there."""
    (tmp_path / "history.jsonl").write_bytes(b"1\n\xff\xfe\n2\n")
    assert ["1", "2"] == ControlStore(tmp_path).history()


def test_a_second_query_is_refused(address):
    """In a sentence that says what to do, and no secrets; the first may come again, or leave."""
    store = ControlStore(address)
    assert "" == store.owner()
    store.claim("first")
    store.claim("first")
    assert "first" == store.owner()
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


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"", b"\n"])
def test_a_damaged_owner_is_replaced(tmp_path, damage):
    """It names no query, so nobody is disturbed; later queries are refused as ever."""
    store = ControlStore(tmp_path)
    (tmp_path / "owner").write_bytes(damage)
    store.claim("first")
    assert "first" == store.owner()
    with pytest.raises(ValueError, match="in use by the query first"):
        store.claim("second")


def test_an_owner_that_cannot_be_written_does_not_stop_the_query(tmp_path):
    """A folder is in the way: who else uses the path cannot be known, and the query goes on."""
    (tmp_path / "owner").mkdir()
    store = ControlStore(tmp_path)
    store.claim("first")
    store.release("first")


@pytest.mark.parametrize("name", ["versions", "identity"])
def test_what_is_in_the_way_is_named_at_the_start(tmp_path, name):
    """A file in the place of a folder, or the other way round: one sentence, before any work."""
    if name == "versions":
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"control: the folder {tmp_path} cannot be written: "):
        ControlStore(tmp_path).prepare()


def test_a_damaged_identity_is_named_at_the_start(tmp_path):
    """Tasks could never recognize the folder by it."""
    (tmp_path / "identity").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="identity is damaged; remove it and start again"):
        ControlStore(tmp_path).prepare()


def test_a_file_system_without_hard_links_will_do(tmp_path, monkeypatch):
    """As mounts of object stores are: nothing depends on links."""

    def refuse(*_, **__):
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    store = ControlStore(tmp_path)
    store.prepare()
    store.publish(version(1))
    store.claim("first")
    assert ("first", 1) == (store.owner(), store.newest().number)
    with pytest.raises(ValueError, match="in use by the query first"):
        store.claim("second")
    assert {"identity", "owner", "versions"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["versions", "history.jsonl", "learned.json", "owner"])
def test_links_are_not_followed(tmp_path, name):
    """Files elsewhere are neither read, written nor removed through them."""
    control, victim = tmp_path / "control", tmp_path / "victim"
    control.mkdir()
    if name == "versions":
        victim.mkdir()
        for number in range(30):
            (victim / f"{number:09}.json").write_text("precious")
    else:
        victim.write_text('{"slots": 7}\n')
    before = contents(victim)
    (control / name).symlink_to(victim)
    store = ControlStore(control)
    for act in (
        store.prepare,
        lambda: store.publish(version(40)),
        lambda: store.save_learned({}),
        lambda: store.add_history("{}"),
        lambda: store.claim("first"),
        lambda: store.release("first"),
    ):
        with suppress(OSError, ValueError):  # whatever it says: the victim is what matters
            act()
        assert before == contents(victim)
    if name == "versions":
        assert NO_VERSION == store.pin_newest()


def contents(path):
    """Everything in a file or a folder."""
    files = [path] if path.is_file() else sorted(path.iterdir())
    return {file.name: file.read_text() for file in files}


def modes(folder):
    """The rights to everything below a folder, and to itself."""
    return {
        path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]
    }


def test_nobody_else_can_read_the_control_path(tmp_path):
    """Hot keys are in the history."""
    store = ControlStore(tmp_path / "control")
    fill(store)
    found = modes(tmp_path / "control")
    assert {"0o700"} == {found.pop("control"), found.pop("versions")}
    assert {"0o600"} == set(found.values())
    assert {"identity", "owner", "learned.json", "history.jsonl"} < set(found)


def test_the_group_of_a_folder_keeps_its_rights(tmp_path):
    """Executors of another user read what is in a folder that was made for both."""
    (tmp_path / "control").mkdir()
    (tmp_path / "control").chmod(0o775)
    before = os.umask(0)
    try:
        fill(ControlStore(tmp_path / "control"))
    finally:
        os.umask(before)
    found = modes(tmp_path / "control")
    assert ("0o775", "0o770") == (found.pop("control"), found.pop("versions"))
    assert {"0o660"} == set(found.values())


def fill(store):
    """One file of each kind."""
    store.prepare()
    store.publish(version(1))
    store.claim("first")
    store.save_learned({})
    store.add_history("{}")
    store.drain([1])


def test_drained_workers_of_a_wrong_shape_are_none(tmp_path):
    """Whatever somebody wrote there."""
    for text in ("5", '["a"]', "[[1]]", "null", json.dumps([2, 3])):
        (tmp_path / "drained.json").write_text(text)
        found = ControlStore(tmp_path).drained()
    assert {2, 3} == found


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3://AKIA:SEC/RET@bucket/c", "s3://bucket/c"),
        ("s3://AKIA:SEC@RET@bucket/c?region=eu", "s3://bucket/c"),
        ("s3://AKIA@bucket/c", "s3://bucket/c"),
        ("s3://bucket/c?secret_key=SECRET&x=y", "s3://bucket/c"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("s3://bucket/c#SECRET", "s3://bucket/c"),
        ("/a/b@c", "/a/b@c"),
    ],
)
def test_addresses_are_shown_without_secrets(address, shown):
    """Also with slashes in a password, which must be escaped and often are not."""
    assert shown == without_secrets(address)


@pytest.mark.parametrize(
    "address",
    [
        "s3://AKIA:SEC/RET@bucket/c",
        "s3://AKIA:SEC%2FRET@bucket:none/c",
        "gs://AKIA:SEC/RET@/?x=SECRET",
        "hdfs://AKIA:SEC/RET@nowhere.invalid:1/c",
        "abfss://AKIA:SEC/RET@x/c?client_secret=SECRET",
        "dbfs://AKIA:SEC/RET@bucket/c",
    ],
)
def test_an_error_holds_no_secret(address):
    """Neither its sentence nor what it was caused by."""
    with pytest.raises(ValueError, match="control: ") as raised:
        ControlStore(address).prepare()
    told = "".join(traceback.format_exception(raised.value))
    message = told[told.rindex("ValueError: ") :]
    for secret in ("SEC/RET", "SEC%2FRET", "SECRET", "AKIA", "RET"):
        assert secret not in message
    assert raised.value.__cause__ is None or "SEC" not in str(raised.value.__cause__)
    assert raised.value.__context__ is None or "SEC" not in str(raised.value.__context__)
