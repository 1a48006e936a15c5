"""Checks that every implementation of `Files` must pass."""

import uuid

import pytest
from pyarrow.fs import FileSystem

from steelyard.control.addresses import files_at
from steelyard.control.remote_files import RemoteFiles


@pytest.fixture(params=["local folder", "object store", "remote folder"])
def files(request, tmp_path):
    """A folder of each kind that does not exist yet."""
    if request.param == "local folder":
        return files_at(tmp_path / "control")
    if request.param == "object store":
        return files_at(request.getfixturevalue("remote"))
    return RemoteFiles(f"file://{tmp_path}/control")


NAMES = ["text", "folder/text", "folder/in a folder/text"]


@pytest.mark.parametrize("name", NAMES)
def test_a_replaced_text_is_read_back(files, name):
    """A reader gets the whole newest text, whatever the length of the text before."""
    for text in ("long text, ä and \n more", "", "short"):
        files.replace(name, text)
        assert text == files.read_text(name)
        assert text.encode() == files.read_bytes(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_created_text_is_never_replaced(files, name):
    """The first text stays until the file is deleted."""
    files.create_if_absent(name, "first")
    files.create_if_absent(name, "second")
    assert "first" == files.read_text(name)
    files.delete(name)
    files.create_if_absent(name, "third")
    assert "third" == files.read_text(name)


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_appended_in_order(files, name):
    """Lines can be appended to a file that does not exist, and to a replaced file."""
    files.append(name, "1")
    files.append(name, "ä")
    assert "1\nä\n" == files.read_text(name)
    files.replace(name, "0\n")
    files.append(name, "1")
    assert "0\n1\n" == files.read_text(name)


@pytest.mark.parametrize("begin", range(7))
def test_bytes_are_read_from_a_position(files, begin):
    """The result is empty beyond the end of the file."""
    files.replace("text", "12345")
    assert b"12345"[begin:] == files.read_bytes("text", begin)


def test_a_deleted_file_does_not_exist(files):
    """Deleting it again has no effect."""
    files.replace("folder/text", "1")
    assert files.exists("folder/text")
    for _ in range(2):
        files.delete("folder/text")
        assert not files.exists("folder/text")
        assert files.stamp("folder/text") is None
        assert [] == files.list_folder("folder")


def test_a_file_that_does_not_exist_cannot_be_read(files):
    """All readers raise the same type of error."""
    for read in (files.read_text, files.read_bytes):
        for name in NAMES:
            with pytest.raises(FileNotFoundError):
                read(name)


def test_a_folder_lists_its_files_and_folders(files):
    """Temporary files are not listed."""
    assert [] == files.list_folder("folder")
    for name in ("folder/a", "folder/b", "folder/c/d", "elsewhere"):
        files.replace(name, name)
        files.replace(name, name)
    assert ["a", "b", "c"] == sorted(files.list_folder("folder"))


def test_a_prepared_folder_can_be_written(files):
    """A prepared folder is empty, and can be prepared again."""
    assert not files.exists()
    for _ in range(2):
        files.prepare()
        assert [] == files.list_folder("")
    files.replace("text", "1")
    assert files.exists()


def test_a_stamp_changes_with_the_length(files):
    """It stays the same while the file does not change."""
    stamps = []
    for text in ("", "1", "12"):
        files.replace("text", text)
        assert files.stamp("text") == files.stamp("text")
        assert len(text) == files.stamp("text")[0]
        stamps.append(files.stamp("text"))
    assert 3 == len(set(stamps))


def test_a_file_that_is_not_text_is_a_value_error(files):
    """Readers can distinguish it from a file that does not exist."""
    files.replace("text", "")
    system, path = FileSystem.from_uri(files.address)
    with system.open_output_stream(f"{path}/text") as file:
        file.write(b"\xff")
    with pytest.raises(ValueError, match="decode"):
        files.read_text("text")


def test_an_address_opens_the_same_folder(files):
    """Another process can open the address; its form for messages contains no secrets."""
    text = uuid.uuid4().hex
    files.replace("folder/text", text)
    assert text == files_at(files.address).read_text("folder/text")
    assert "secret" not in files.shown
    assert files.address.startswith(files.shown.partition("://")[0])


def test_only_a_local_folder_has_a_local_path(files):
    """The files of the folder are at that path."""
    files.replace("text", "1")
    if files.local_path is None:
        assert files.costs_per_request
    else:
        assert "1" == (files.local_path / "text").read_text()
