"""The measured work of workers, and the decisions about it, without a control loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.assignment import Assignment
from steelyard.control.judgment import DelegatedOwners, FixedOwners
from steelyard.control.measured_work import MeasuredWork
from steelyard.control.slot_totals import BatchWork
from steelyard.delegation import PaperRules, SteadyRules

WORKERS, EACH = 4, 6
RULES = [PaperRules(), SteadyRules(), SteadyRules(proportional=True, patience=1)]

amounts = st.lists(st.integers(1, 1000), min_size=WORKERS, max_size=WORKERS)


def work(rows, busy, version=0):
    """Return the work in a micro-batch that lasts as long as its busiest worker."""
    rows, busy = np.array(rows, float), np.array(busy, float)
    nothing = np.zeros(WORKERS)
    return BatchWork(rows, busy, nothing, nothing, version, float(busy.max()))


def delegated(rules):
    """Return the owners of an equal assignment."""
    return DelegatedOwners(rules, rules.source(Assignment.equal(WORKERS, EACH)), WORKERS)


@given(amounts, amounts, st.integers(1, 5))
def test_work_is_rescaled_in_proportion_to_virtual_workers(rows, busy, factor):
    """With the same number of virtual workers, the work does not change."""
    for then, now, scale in (([5] * WORKERS,) * 2 + (1,), ([2] * 4, [2 * factor] * 4, factor)):
        measured = MeasuredWork(WORKERS)
        measured.add(work(rows, busy), then, now)
        expected = measured.rescaled()
        assert (scale * np.array(rows)).tolist() == expected.messages.tolist()
        assert (scale * np.array(busy)).tolist() == expected.busy.tolist()
        assert expected.is_known.all()


@given(amounts, amounts)
def test_a_plan_keeps_the_messages_and_the_speeds(rows, busy):
    """Neither the total number of messages nor the seconds per message change."""
    measured = MeasuredWork(WORKERS)
    measured.add(work(rows, busy), [EACH] * WORKERS, [EACH] * WORKERS)
    owners = np.repeat(np.arange(WORKERS, dtype=np.int32), EACH)
    expected = measured.planned(owners, np.full(WORKERS * EACH, 1 / (WORKERS * EACH)))
    assert expected.messages.sum() == pytest.approx(sum(rows))
    for seen, done, seconds in zip(expected.measurements(), rows, busy, strict=True):
        assert seen.service_time == pytest.approx(seconds / done)
        assert seen.arrivals * seen.service_time == pytest.approx(seen.busy)


def test_the_speed_of_a_worker_without_rows_is_unknown():
    """It is known if the plan has no messages for the worker, because the speed does not matter."""
    measured = MeasuredWork(2)
    nothing = np.zeros(2)
    done = BatchWork(np.array([9.0, 0.0]), np.array([1.0, 0.0]), nothing, nothing, 0, 1.0)
    measured.add(done, [1, 1], [1, 1])
    owners = np.array([0, 1], np.int32)
    assert [True, False] == measured.planned(owners, np.array([0.5, 0.5])).is_known.tolist()
    assert [True, True] == measured.planned(owners, np.array([1.0, 0.0])).is_known.tolist()


@pytest.mark.parametrize("rules", RULES, ids=repr)
@given(st.lists(amounts, max_size=12), st.sets(st.integers(0, WORKERS - 1), max_size=WORKERS - 1))
@settings(max_examples=50)
def test_the_moves_are_the_changes_of_owners(rules, slots, drained):
    """No virtual worker is lost, and a drained worker owns none."""
    judgment = delegated(rules)
    owners = judgment.owners
    for slot, busy in enumerate(slots, start=1):
        judgment.remember(slot)
        rows = 100 * np.bincount(owners, minlength=WORKERS)
        judgment.add(work(rows, busy, version=slot))
        decision = judgment.decide(slot, drained=drained)
        for move in decision.moves:
            assert move.giver == owners[move.virtual]
            owners[move.virtual] = move.taker
        assert owners.tolist() == judgment.owners.tolist()
        assert np.bincount(owners, minlength=WORKERS).tolist() == judgment.owned
        assert all(judgment.owned[worker] == 0 for worker in drained)
        assert drained == {w for w, state in enumerate(decision.states) if state == "drained"}


@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_a_slow_worker_gives_to_the_others(rules):
    """With all rules, only the slow worker gives, and it takes none."""
    judgment = delegated(rules)
    moves = []
    for slot in range(1, 4):
        rows = 100 * np.array(judgment.owned)
        judgment.add(work(rows, rows / [0.2, 1, 1, 1]))
        moves += judgment.decide(slot).moves
    assert moves
    assert {0} == {move.giver for move in moves}
    assert 0 not in {move.taker for move in moves}


@pytest.mark.parametrize("rules", RULES, ids=repr)
@pytest.mark.parametrize("unit", [1 / 1024, 1, 1024])
def test_a_slot_may_have_any_length(rules, unit):
    """The same ratios of busy times lead to the same states, in seconds or days."""
    judgment = delegated(rules)
    judgment.add(work([600] * WORKERS, np.array([512, 128, 128, 128]) * unit))
    assert ["busy", "idle", "idle", "idle"] == judgment.decide(1).states


@given(amounts)
def test_fixed_owners_never_move(busy):
    """Each virtual worker is a task, and all workers have the same number."""
    fixed = FixedOwners(WORKERS, EACH)
    fixed.add(work(busy, busy))
    decision = fixed.decide(1, drained={0})
    assert (["normal"] * WORKERS, ()) == (decision.states, decision.moves)
    assert list(range(WORKERS * EACH)) == fixed.owners.tolist()
    assert fixed.save() is None
