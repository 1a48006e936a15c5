"""`steelyard workers`: show, drain and refill workers."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.control.controller import Controller
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore


def run(*arguments):
    return CliRunner().invoke(
        app, ["workers", *arguments], env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    )


@pytest.fixture
def control(tmp_path):
    """Return the control path of a stream with three workers, after one slot."""
    loop = Controller(3, 10, delegation=True, store=ControlStore(tmp_path), buckets=64)
    counts = SourceReport(0, 0, 0, np.ones(64, np.float32), (("<hot>", 30), ("rare", 0.2)))
    loop.finish_batch(0, 1.0, [counts], [WorkerReport(0, w, 20, 0.5) for w in range(3)], 0.0)
    return str(tmp_path)


def test_workers_are_shown_drained_and_refilled(control):
    """The control loop finds the drained workers in the control path."""
    shown = run("show", "--control", control)
    assert shown.exit_code == 0
    assert "slot 1 · micro-batch 0 · hot: '<hot>' 50%" in shown.output
    assert "rare" not in shown.output, "0 % of the messages are not hot"
    assert 3 == shown.output.count("33.3%")
    assert "drained: 2" in run("drain", "2", "--control", control).output
    assert {2} == ControlStore(control).drained()
    assert "drained: none" in run("refill", "2", "--control", control).output
    assert set() == ControlStore(control).drained()


def test_low_load_is_shown(tmp_path):
    """Below the floor the states say nothing about the workers."""
    loop = Controller(2, 10, delegation=True, store=ControlStore(tmp_path), buckets=64)
    loop.finish_batch(0, 1.0, [], [WorkerReport(0, w, 2 + 20 * w, 0.01) for w in range(2)], 0.0)
    shown = run("show", "--control", str(tmp_path)).output
    assert "low load" in shown
    assert 2 == shown.count("normal")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["drain", "7"], "there is no worker 7; the workers are [0, 1, 2]"),
        (["drain", "0", "1", "2"], "the last worker cannot be drained"),
    ],
)
def test_bad_worker_numbers_are_refused(control, arguments, sentence):
    """No worker is drained."""
    failed = run(*arguments, "--control", control)
    assert failed.exit_code == 2
    assert sentence in " ".join(failed.output.replace("│", " ").split())
    assert set() == ControlStore(control).drained()


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"slot":2,"batch":1,"time":0.0,"work',
        b'{"slot":2,"batch":1,"time":0.0,"work\n',
        b'["slot", 2]\n',
        b'{"slot":2}\n',
        b"\xff\xfe\n",
        b"\n",
    ],
)
def test_damaged_lines_of_the_history_are_skipped(control, damaged):
    """The last readable slot is shown, and its workers can be drained."""
    with (Path(control) / "history.jsonl").open("ab") as file:
        file.write(damaged)
    shown = run("show", "--control", control)
    assert shown.exit_code == 0, shown.output
    assert "slot 1 · micro-batch 0" in shown.output
    assert "drained: 2" in run("drain", "2", "--control", control).output


def test_a_slot_with_a_value_of_another_type_is_skipped(control):
    history = Path(control) / "history.jsonl"
    with history.open("a") as file:
        file.write(history.read_text().replace('"share":0.3', '"share":null,"x":0.3', 1))
        file.write(history.read_text().replace('"messages":20', '"messages":"20"', 1))
    assert "slot 1 · micro-batch 0" in run("show", "--control", control).output


def test_a_history_without_a_readable_line_is_refused(control):
    """An unreadable list of drained workers counts as empty."""
    (Path(control) / "history.jsonl").write_bytes(b"nonsense\n")
    (Path(control) / "drained.json").write_text('{"a": 1}')
    failed = run("drain", "1", "--control", control)
    assert failed.exit_code == 2
    assert "has no history yet" in " ".join(failed.output.replace("│", " ").split())
    assert "drained: none" in run("refill", "1", "--control", control).output


def test_a_missing_folder_is_refused(tmp_path):
    """The command does not create the folder."""
    failed = run("show", "--control", str(tmp_path / "nowhere"))
    assert failed.exit_code == 2
    assert "does not exist" in " ".join(failed.output.replace("│", " ").split())
    assert not (tmp_path / "nowhere").exists()
    failed = run("show", "--control", str(tmp_path))
    assert "has no history yet" in " ".join(failed.output.replace("│", " ").split())


def test_workers_of_a_stream_with_pull_cannot_be_drained(tmp_path):
    """They own no virtual workers."""
    loop = Controller(3, 1, delegation=False, store=ControlStore(tmp_path), buckets=64)
    loop.finish_batch(0, 1.0, [], [WorkerReport(0, w, 20, 0.5) for w in range(3)], 0.0)
    failed = run("drain", "1", "--control", str(tmp_path))
    assert failed.exit_code == 2
    assert "drain is for placement='delegated'" in failed.output.replace("\n", " ")
    assert set() == ControlStore(tmp_path).drained()
