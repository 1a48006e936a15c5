"""What `steelyard stream` shows while it runs and when it ends, without Spark."""

from io import StringIO
from types import SimpleNamespace

import pytest

from steelyard.cli.console import PlainConsole
from steelyard.cli.stream_screen import reason_for_no_slot, results_to_come, screen_of
from tests.dashboard.model import slot
from tests.hostile import HOSTILE, obeyed_by_a_terminal

OPTIONS = {"checkpoint": None, "watermark": None}


def text_of(screen):
    """Return what a terminal of 80 columns shows."""
    shown = StringIO()
    PlainConsole(file=shown, width=80).print(screen)
    return shown.getvalue()


def ended(*, rows=0, operators=()):
    """Return the query of a run with one micro-batch."""
    progress = SimpleNamespace(numInputRows=rows, stateOperators=operators)
    return SimpleNamespace(recentProgress=[progress], lastProgress=progress)


def test_before_the_first_slot_the_screen_says_what_it_waits_for():
    assert "Waiting for the first micro-batch" in text_of(screen_of([], [], []))


def test_the_screen_fits_a_terminal():
    """It has the workers, the largest results and the totals."""
    last = slot(7, [100, 50], messages=[3000, 40], hot=["red"], states=["busy", "idle"])
    shown = text_of(screen_of([last], [["red", 2500], ["x" * 50, 1]], ["page", "count"]))
    for expected in ("slot 7", "hot: 'red' 50%", "busy", "3,000", "2,500", "x" * 39 + "…"):
        assert expected in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_key_with_a_tiny_share_is_not_hot():
    """It would be shown as 0 %."""
    last = slot(1, [10], hot=["red"])
    rare = SimpleNamespace(key="red", share=0.001)
    object.__setattr__(last, "hot_keys", (rare,))
    assert "hot: none" in text_of(screen_of([last], [], []))


def test_low_load_is_named():
    """No virtual worker moves then."""
    assert "low load" in text_of(screen_of([slot(1, [10, 10], messages=[1, 1])], [], []))


def test_results_reach_the_terminal_without_control_characters():
    shown = text_of(screen_of([slot(1, [10])], [[HOSTILE, 1]], ["page", "count"]))
    assert not obeyed_by_a_terminal(shown)


@pytest.mark.parametrize(
    ("rows", "reason"), [(0, "There were no new messages."), (5, "No slot has ended.")]
)
def test_a_run_without_a_slot_has_a_reason(rows, reason):
    assert reason == reason_for_no_slot(ended(rows=rows))


@pytest.mark.parametrize(
    ("checkpoint", "place"),
    [(None, "no --checkpoint has them"), ("cp", "they are in the checkpoint")],
)
def test_results_that_wait_are_counted(checkpoint, place):
    """The line says whether a later run can continue with them."""
    lines = list(results_to_come(ended(), 1, OPTIONS | {"checkpoint": checkpoint}))
    assert 1 == len(lines)
    assert lines[0].startswith("1 partial result waited with the workers")
    assert place in lines[0]


def test_windows_that_may_change_are_counted():
    """Spark's own state of windows counts, and that of the workers does not."""
    operators = [
        SimpleNamespace(operatorName="stateStoreSave", numRowsTotal=1200),
        SimpleNamespace(operatorName="transformWithStateInPandas", numRowsTotal=4),
    ]
    lines = list(results_to_come(ended(operators=operators), 0, OPTIONS | {"watermark": "1 hour"}))
    assert 1 == len(lines)
    assert "1,200 results of windows that the watermark has not passed" in lines[0]
    assert [] == list(results_to_come(ended(operators=operators), 0, OPTIONS))
