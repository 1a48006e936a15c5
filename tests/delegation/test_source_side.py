"""A source's side of both delegations: what they have in common, and the paper's queues."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.assignment import Assignment, Move
from steelyard.delegation import PaperRules, Report, Signal
from tests.delegation.reports import BOTH, BUSY, IDLE, NORMAL, say, source


@BOTH
def test_only_the_first_acknowledgement_of_a_slot_counts(rules):
    """Every acknowledgement carries the signal, one is enough."""
    side = source(rules)
    assert [Move(19, giver=1, taker=0)] == say(side, 1, w0=IDLE, w1=BUSY)
    assert [] == say(side, 1, w0=IDLE, w1=BUSY)


@BOTH
def test_signals_from_strangers_are_refused(rules):
    """A worker that is not there cannot ask."""
    with pytest.raises(ValueError, match=r"there is no worker 7; the workers are \[0, 1, 2\]"):
        source(rules).acknowledge(7, Report(1, IDLE))


def test_no_report_is_no_news():
    """A worker in its first slot acknowledges without a report."""
    assert [] == source().acknowledge(0, None)


def test_the_papers_queues_are_first_come_first_served():
    """The first idle worker gets from the first busy one."""
    side = source(PaperRules())
    assert [] == say(side, 1, w1=BUSY, w2=BUSY)
    assert [Move(19, giver=1, taker=0)] == say(side, 1, w0=IDLE)


def test_the_papers_queues_keep_stale_entries():
    """A worker that is no longer idle still gets one."""
    side = source(PaperRules())
    say(side, 1, w0=IDLE)
    say(side, 2, w0=NORMAL)
    assert [Move(19, giver=1, taker=0)] == say(side, 2, w1=BUSY)


@BOTH
def test_workers_join_and_leave(rules):
    """A joining worker gets an average part, a leaving one's part goes to the others."""
    side = source(rules, workers=3, each=8)
    assert 6 == len(side.add_worker())
    assert 6 == side.assignment.count(3)
    say(side, 1, w3=IDLE)
    assert 6 == len(side.remove_worker(3))
    assert [] == say(side, 1, w1=BUSY)  # nobody remembers that worker 3 was idle
    with pytest.raises(ValueError, match="there is no worker 3"):
        side.acknowledge(3, Report(2, IDLE))
    assert side.add_worker(3)


REPORTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.sampled_from(Signal)), max_size=120
)


@BOTH
@given(reports=REPORTS, cut=st.integers(0, 120))
def test_a_source_resumes_exactly(rules, reports, cut):
    """Saved as JSON at any moment, it goes on as if nothing had happened."""
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
    """Normal reports move nothing; idle ones only where a busy worker waits: nobody need wait."""
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
    """Whatever is reported, all of them stay owned, and moves tell what happened."""
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
