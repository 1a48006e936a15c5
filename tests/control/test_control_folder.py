"""A control path on a disk: removed folders, unexpected files, and permissions."""

import errno
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from steelyard.control.store import NO_VERSION, ControlStore
from tests.control.model import version


def test_a_removed_folder_is_created_again(tmp_path):
    """No operation fails if another process removes the whole folder."""
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


def test_an_operation_is_repeated_if_its_folder_is_removed(tmp_path, monkeypatch):
    """The errors "file exists" and "not found" both lead to a retry."""
    store = ControlStore(tmp_path / "control")
    errors = [
        FileExistsError(errno.EEXIST, "removed"),
        FileNotFoundError(errno.ENOENT, "removed"),
    ]
    replace = os.replace

    def failing(*args, **options):
        if errors:
            raise errors.pop()
        replace(*args, **options)

    monkeypatch.setattr(os, "replace", failing)
    store.publish(version(1))
    assert not errors
    assert ["000000001.json"] == [path.name for path in (tmp_path / "control/versions").iterdir()]


def test_another_folder_of_the_same_name_is_recognized(tmp_path):
    """The driver's folder has a random identity, which it keeps."""
    here, there = ControlStore(tmp_path / "here"), ControlStore(tmp_path / "there")
    here.prepare()
    assert not there.is_identified_by(here.identity)
    there.prepare()
    assert not there.is_identified_by(here.identity)
    again = ControlStore(tmp_path / "here")
    again.prepare()
    assert here.identity == again.identity
    assert ControlStore(tmp_path / "here").is_identified_by(here.identity)


def test_a_folder_that_cannot_be_written_is_rejected(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written: Not a directory"):
        ControlStore(tmp_path / "file" / "control").prepare()


@pytest.mark.parametrize("name", ["versions", "identity"])
def test_a_file_in_place_of_a_folder_is_rejected(tmp_path, name):
    """A folder in place of a file is rejected too."""
    if name == "versions":
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=f"control: the folder {tmp_path} cannot be written: "):
        ControlStore(tmp_path).prepare()


def test_a_damaged_identity_is_rejected(tmp_path):
    """Tasks cannot recognize the folder by it."""
    (tmp_path / "identity").write_bytes(b"\xff")
    with pytest.raises(ValueError, match="identity is damaged; remove it and start again"):
        ControlStore(tmp_path).prepare()


def test_an_owner_that_cannot_be_written_does_not_stop_the_query(tmp_path):
    """A folder has the name of the file, so the owner is unknown, and the query continues."""
    (tmp_path / "owner").mkdir()
    store = ControlStore(tmp_path)
    store.claim("first")
    store.release("first")


def test_a_file_system_without_hard_links_is_supported(tmp_path, monkeypatch):
    """Mounts of object stores have no hard links."""

    def fail(*_, **__):
        raise OSError(errno.EOPNOTSUPP, "links are not supported")

    monkeypatch.setattr(os, "link", fail)
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
    """Files outside the control path are neither read, written nor removed through links."""
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
        with suppress(OSError, ValueError):  # only the victim matters here
            act()
        assert before == contents(victim)
    if name == "versions":
        assert NO_VERSION == store.pin_newest()


def contents(path):
    """Return the texts of a file, or of all files in a folder."""
    files = [path] if path.is_file() else sorted(path.iterdir())
    return {file.name: file.read_text() for file in files}


def modes(folder):
    """Return the permissions of a folder and of everything below it."""
    return {
        path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in [folder, *folder.rglob("*")]
    }


def test_only_the_owner_can_read_the_control_path(tmp_path):
    """The history contains hot keys, which may be private."""
    store = ControlStore(tmp_path / "control")
    fill(store)
    found = modes(tmp_path / "control")
    assert {"0o700"} == {found.pop("control"), found.pop("versions")}
    assert {"0o600"} == set(found.values())
    assert {"identity", "owner", "learned.json", "history.jsonl"} < set(found)


def test_the_group_of_a_folder_keeps_its_permissions(tmp_path):
    """Executors of another user can read a folder that was created for both users."""
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
    """Write one file of each kind."""
    store.prepare()
    store.publish(version(1))
    store.claim("first")
    store.save_learned({})
    store.add_history("{}")
    store.drain([1])
