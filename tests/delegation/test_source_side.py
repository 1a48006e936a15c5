"""The source sides of both delegations: common promises, and the paper's queues."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.assignment import Assignment, Move
from steelyard.delegation import PaperRules, Report, Signal
from tests.delegation.reports import BOTH, BUSY, IDLE, NORMAL, say, source


@BOTH
def test_only_the_first_acknowledgement_of_a_slot_counts(rules):
    """Every acknowledgment carries the signal, and one of them is enough."""
    side = source(rules)
    assert [Move(19, giver=1, taker=0)] == say(side, 1, w0=IDLE, w1=BUSY)
    assert [] == say(side, 1, w0=IDLE, w1=BUSY)


@BOTH
def test_signals_from_unknown_workers_are_rejected(rules):
    with pytest.raises(ValueError, match=r"there is no worker 7; the workers are \[0, 1, 2\]"):
        source(rules).acknowledge(7, Report(1, IDLE))


def test_an_acknowledgement_without_a_report_is_ignored():
    """A worker in its first slot acknowledges without a report."""
    assert [] == source().acknowledge(0, None)


def test_the_papers_queues_are_first_come_first_served():
    """The first idle worker takes from the first busy worker."""
    side = source(PaperRules())
    assert [] == say(side, 1, w1=BUSY, w2=BUSY)
    assert [Move(19, giver=1, taker=0)] == say(side, 1, w0=IDLE)


def test_the_papers_queues_keep_stale_entries():
    """A worker that is no longer idle still gets a virtual worker."""
    side = source(PaperRules())
    say(side, 1, w0=IDLE)
    say(side, 2, w0=NORMAL)
    assert [Move(19, giver=1, taker=0)] == say(side, 2, w1=BUSY)


@BOTH
def test_workers_join_and_leave(rules):
    """A worker that joins gets the mean number; the others take those of a removed worker."""
    side = source(rules, workers=3, each=8)
    assert 6 == len(side.add_worker())
    assert 6 == side.assignment.count(3)
    say(side, 1, w3=IDLE)
    assert 6 == len(side.remove_worker(3))
    assert [] == say(side, 1, w1=BUSY)  # the idle report of worker 3 is forgotten
    with pytest.raises(ValueError, match="there is no worker 3"):
        side.acknowledge(3, Report(2, IDLE))
    assert side.add_worker(3)


REPORTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(Signal)), max_size=120
)


@BOTH
@given(reports=REPORTS, cut=st.integers(0, 120))
def test_a_source_resumes_exactly(rules, reports, cut):
    """A source that is saved as JSON and resumed makes the same moves."""
    straight, stopped = source(rules, workers=5), source(rules, workers=5)
    slot = 0
    for i, (worker, later, state) in enumerate(reports):
        slot += later
        if i == cut:
            stopped = rules.resume_source(json.loads(json.dumps(stopped.save())))
        report = Report(slot, state)
        assert straight.acknowledge(worker, report) == stopped.acknowledge(worker, report)
    assert straight.assignment == stopped.assignment


@BOTH
@given(reports=REPORTS)
def test_nothing_moves_without_a_busy_worker(rules, reports):
    """Normal reports lead to no move; idle reports only if a busy worker waits."""
    side = source(rules, workers=5)
    slot = 0
    for worker, later, state in reports:
        slot += later
        was_pending = side.has_pending_giver
        moves = side.acknowledge(worker, Report(slot, state))
        assert not moves or state is BUSY or (state is IDLE and was_pending)
        assert was_pending or state is BUSY or not side.has_pending_giver


@BOTH
@given(reports=REPORTS)
def test_no_virtual_worker_is_ever_lost(rules, reports):
    """After any reports, each virtual worker has an owner, and the moves lead to it."""
    side = source(rules, workers=5)
    replay = Assignment.equal(5, 10)
    slot = 0
    for worker, later, state in reports:
        slot += later
        for move in side.acknowledge(worker, Report(slot, state)):
            assert move.giver != move.taker
            assert [move] == replay.give(move.giver, move.taker)
    assert replay == side.assignment
    assert 50 == sum(side.assignment.count(w) for w in range(5))
