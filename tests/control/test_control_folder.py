"""A control path on a disk: folders that vanish, files that somebody else made, and rights."""

import errno
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from steelyard.control.store import NO_VERSION, ControlStore
from tests.control.model import version


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


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    """Before any work starts."""
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        ControlStore(tmp_path / "file" / "control").prepare()


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


def test_an_owner_that_cannot_be_written_does_not_stop_the_query(tmp_path):
    """A folder is in the way: who else uses the path cannot be known, and the query goes on."""
    (tmp_path / "owner").mkdir()
    store = ControlStore(tmp_path)
    store.claim("first")
    store.release("first")


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
