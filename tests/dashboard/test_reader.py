"""Reading a history while it is written."""

import pytest

from steelyard.control.store import ControlStore
from steelyard.dashboard.reader import HistoryReader, read_finished
from steelyard.dashboard.runs import followed
from tests.dashboard.model import slot


def line(number, time=None):
    return slot(number, [1, 1], time=time).to_json() + "\n"


def numbers(reader):
    return [known.slot for known in reader.slots()]


@pytest.fixture
def history(tmp_path):
    """Return the history file of a control path."""
    return tmp_path / "history.jsonl"


def test_new_lines_are_read_once(tmp_path, history):
    """An incomplete line is read when it is complete."""
    reader = HistoryReader(tmp_path / "not there" / "yet")
    assert [] == numbers(reader)
    reader = HistoryReader(tmp_path)
    assert [] == numbers(reader)
    assert not reader.exists()
    whole, half = line(1), line(2)
    history.write_text(whole + half[:50])
    assert [1] == numbers(reader)
    assert [1] == numbers(reader)
    with history.open("a") as file:
        file.write(half[50:])
    assert [1, 2] == numbers(reader)
    with history.open("a") as file:
        file.write(line(3) + line(4))
    assert [1, 2, 3, 4] == numbers(reader)
    assert 0 == reader.unreadable


def test_a_truncated_file_is_followed(tmp_path, history):
    """Known slots are kept, and new ones are added."""
    reader = HistoryReader(tmp_path)
    history.write_text(line(1) + line(2) + line(3))
    assert [1, 2, 3] == numbers(reader)
    history.write_text(line(3) + line(4))
    assert [1, 2, 3, 4] == numbers(reader)
    history.write_text(line(4) + line(5) + line(6) + line(7))
    assert [1, 2, 3, 4, 5, 6, 7] == numbers(reader)


def test_a_new_run_replaces_the_old_one(tmp_path, history):
    """After the file is removed, a new file starts with slot 1."""
    reader = HistoryReader(tmp_path)
    history.write_text(line(1) + line(2))
    assert [1, 2] == numbers(reader)
    history.unlink()
    assert [1, 2] == numbers(reader), "known slots are kept until a new run starts"
    history.write_text(line(1, time=99.0))
    assert [1] == numbers(reader)


def test_an_empty_file_has_no_slots(tmp_path, history):
    reader = HistoryReader(tmp_path)
    history.write_text("")
    assert [] == numbers(reader)
    history.write_text(line(1))
    assert [1] == numbers(reader)


def test_lines_that_are_not_slots_are_counted_and_skipped(tmp_path, history):
    reader = HistoryReader(tmp_path)
    odd = line(2).replace('"slot":2', '"slot":"2"')
    damaged = b'{"slot":2}\nnonsense\n[]\n\xff\n\n' + odd.encode()
    history.write_bytes(line(1).encode() + damaged + line(3).encode())
    assert [1, 3] == numbers(reader)
    assert 5 == reader.unreadable
    assert "5 lines of" in followed(reader, clock=lambda: 3.0).notice()


def test_a_history_that_the_store_truncates_is_followed(tmp_path, monkeypatch):
    """The store truncates a history with very many lines."""
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES", 3)
    store, reader = ControlStore(tmp_path), HistoryReader(tmp_path)
    for number in range(1, 20):
        store.add_history(line(number).strip())
        assert list(range(1, number + 1)) == numbers(reader)


def test_object_stores_are_followed(remote, monkeypatch):
    """Every new line rewrites the file there, and only the last lines are kept."""
    monkeypatch.setattr("steelyard.control.store._KEPT_LINES_REWRITTEN", 3)
    store, reader = ControlStore(remote), HistoryReader(remote, rest=0)
    assert [] == numbers(reader)
    for number in range(1, 8):
        store.add_history(line(number).strip())
        assert list(range(1, number + 1)) == numbers(reader)
    assert "secret" not in reader.shown


def test_stores_that_charge_for_requests_are_read_every_two_seconds(remote):
    now = [0.0]
    store, reader = ControlStore(remote), HistoryReader(remote, clock=lambda: now[0])
    assert [] == numbers(reader)
    store.add_history(line(1).strip())
    now[0] = 1.9
    assert [] == numbers(reader)
    now[0] = 2.0
    assert [1] == numbers(reader)


def test_a_read_failure_is_reported(tmp_path, history):
    """Here a folder has the name of the file."""
    history.mkdir()
    reader = HistoryReader(tmp_path)
    run = followed(reader)
    assert [] == run.slots()
    assert "cannot be read: Is a directory" in run.notice()


def test_notices_report_waiting_and_quiet_streams(tmp_path, history):
    """A notice distinguishes a stopped stream from a calm one."""
    run = followed(HistoryReader(tmp_path), clock=lambda: 1000.0)
    run.slots()
    assert "has no slots yet" in run.notice()
    history.write_text(line(1, time=995.0))
    run.slots()
    assert "" == run.notice()
    history.write_text(line(1, time=995.0) + line(2, time=400.0))
    run.slots()
    assert run.notice().startswith("No slot has ended for 10 min")


def test_a_finished_run_is_read_from_a_file_or_its_path(tmp_path, history):
    """A run without slots is refused."""
    with pytest.raises(ValueError, match=r"does not exist; name a history.jsonl"):
        read_finished(history)
    history.write_text("")
    with pytest.raises(ValueError, match="has no slots"):
        read_finished(tmp_path)
    history.write_text(line(1))
    other = tmp_path / "kept lines"
    other.write_text(line(1) + line(2))
    assert 1 == len(read_finished(tmp_path))
    assert 1 == len(read_finished(history))
    assert 2 == len(read_finished(other))
