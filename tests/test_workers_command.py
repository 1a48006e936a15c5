"""`steelyard workers`: drained and refilled by hand."""

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
    """The control path of a stream with three workers, after one slot."""
    loop = Controller(3, 10, delegation=True, store=ControlStore(tmp_path), buckets=64)
    counts = SourceReport(0, 0, 0, np.ones(64, np.float32), (("<hot>", 30),))
    loop.finish_batch(0, 1.0, [counts], [WorkerReport(0, w, 20, 0.5) for w in range(3)], 0.0)
    return str(tmp_path)


def test_workers_are_shown_drained_and_refilled(control):
    """What is said is there for the control loop."""
    shown = run("show", "--control", control)
    assert shown.exit_code == 0
    assert "slot 1 · micro-batch 0 · hot: '<hot>' 50%" in shown.output
    assert 3 == shown.output.count("33.3%")
    assert "drained: 2" in run("drain", "2", "--control", control).output
    assert {2} == ControlStore(control).drained()
    assert "drained: none" in run("refill", "2", "--control", control).output
    assert set() == ControlStore(control).drained()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["drain", "7"], "there is no worker 7; the workers are [0, 1, 2]"),
        (["drain", "0", "1", "2"], "the last worker cannot be drained"),
    ],
)
def test_bad_numbers_get_a_sentence(control, arguments, sentence):
    """And nothing is drained."""
    failed = run(*arguments, "--control", control)
    assert failed.exit_code == 2
    assert sentence in " ".join(failed.output.replace("│", " ").split())
    assert set() == ControlStore(control).drained()


def test_a_folder_that_is_not_there_gets_a_sentence(tmp_path):
    """Rather than being made."""
    failed = run("show", "--control", str(tmp_path / "nowhere"))
    assert failed.exit_code == 2
    assert "there is no folder" in failed.output
    failed = run("show", "--control", str(tmp_path))
    assert "there is no history" in " ".join(failed.output.replace("│", " ").split())


def test_workers_of_a_stream_that_pulls_cannot_be_drained(tmp_path):
    """They own nothing that they could give away."""
    loop = Controller(3, 1, delegation=False, store=ControlStore(tmp_path), buckets=64)
    loop.finish_batch(0, 1.0, [], [WorkerReport(0, w, 20, 0.5) for w in range(3)], 0.0)
    failed = run("drain", "1", "--control", str(tmp_path))
    assert failed.exit_code == 2
    assert "drain is for placement='delegated'" in failed.output.replace("\n", " ")
    assert set() == ControlStore(tmp_path).drained()
