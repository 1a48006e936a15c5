import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steelyard.assignment import Assignment, Move


class AssignmentMachine(RuleBasedStateMachine):
    """Any sequence of moves, joins and leaves."""

    def __init__(self):
        super().__init__()
        self.assignment = Assignment.equal(workers=3, each=7)

    @rule(data=st.data())
    def give(self, data):
        giver, taker = data.draw(
            st.permutations(self.assignment.workers).map(lambda w: (w[0], w[-1]))
        )
        if giver != taker:
            count = data.draw(st.integers(0, self.assignment.count(giver)))
            assert count == len(self.assignment.give(giver, taker, count))

    @precondition(lambda self: len(self.assignment.workers) < 30)
    @rule()
    def add_worker(self):
        before = {w: self.assignment.count(w) for w in self.assignment.workers}
        moves = self.assignment.add_worker()
        joined = self.assignment.workers[-1]
        assert 21 // len(self.assignment.workers) == len(moves) == self.assignment.count(joined)
        assert all(self.assignment.count(w) <= count for w, count in before.items())

    @precondition(lambda self: len(self.assignment.workers) > 1)
    @rule(data=st.data())
    def remove_worker(self, data):
        worker = data.draw(st.sampled_from(self.assignment.workers))
        owned = self.assignment.owned(worker)
        moves = self.assignment.remove_worker(worker)
        assert sorted(owned) == sorted(move.virtual for move in moves)  # and nothing else moves
        assert worker not in self.assignment.workers

    @invariant()
    def every_virtual_worker_has_one_owner(self):
        owners = self.assignment.owners
        for worker in self.assignment.workers:
            for virtual in self.assignment.owned(worker):
                assert worker == owners[virtual]
        assert 21 == sum(self.assignment.count(w) for w in self.assignment.workers)

    @invariant()
    def it_survives_json(self):
        saved = json.loads(json.dumps(self.assignment.save()))
        assert self.assignment == Assignment.resume(saved)


TestAssignment = AssignmentMachine.TestCase


@given(st.lists(st.integers(1, 50), min_size=2, max_size=8))
def test_a_leaving_worker_is_shared_out_in_proportion(counts):
    """Each of the others gets its part, to within one virtual worker."""
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    owned = {
        i: range(end - count, end) for i, (count, end) in enumerate(zip(counts, ends, strict=True))
    }
    assignment = Assignment(owned)
    assignment.remove_worker(0)
    rest = sum(counts[1:])
    for worker, count in enumerate(counts[1:], start=1):
        assert abs(assignment.count(worker) - count - counts[0] * count / rest) <= 1


def test_a_worker_can_leave_and_come_back():
    """Drained and refilled under its own number."""
    assignment = Assignment.equal(workers=3, each=2)
    assignment.remove_worker(1)
    assert [0, 2] == assignment.workers
    moves = assignment.add_worker(1)
    assert [Move(3, giver=0, taker=1), Move(2, giver=2, taker=1)] == moves
    assert [3, 2] == assignment.owned(1)


def test_the_last_one_left_takes_all():
    """Workers that own nothing still take what a leaving one hands out."""
    assignment = Assignment({0: [], 1: [0, 1, 2]})
    assignment.remove_worker(1)
    assert [2, 1, 0] == assignment.owned(0)


def test_a_copy_is_independent():
    """Every source moves virtual workers on its own copy."""
    assignment = Assignment.equal(workers=2, each=2)
    copy = assignment.copy()
    copy.give(0, 1)
    assert assignment != copy
    assert [0, 0, 1, 1] == assignment.owners.tolist()
    assert "Assignment({0: 1, 1: 3})" == repr(copy)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda a: a.give(0, 0), "worker 0 cannot give virtual workers to itself"),
        (lambda a: a.give(0, 9), r"there is no worker 9; the workers are \[0, 1\]"),
        (lambda a: a.give(0, 1, 3), "count must be a whole number, from 0 to 2, got 3"),
        (lambda a: a.add_worker(1), "worker 1 is there already"),
        (lambda a: a.add_worker(-1), "worker must be a whole number, at least 0, got -1"),
        (lambda a: a.owned(7), "there is no worker 7"),
        (lambda a: [a.remove_worker(0), a.remove_worker(1)], "worker 1 is the last one"),
        (lambda _: Assignment({}), "needs at least one worker"),
        (lambda _: Assignment({0: [0, 2]}), "every virtual worker from 0 on to exactly one"),
        (lambda _: Assignment.equal(0, 1), "workers must be a whole number, at least 1, got 0"),
        (lambda _: Assignment.equal(1, 0), "each must be a whole number, at least 1, got 0"),
    ],
)
def test_bad_calls(act, sentence):
    """One sentence, and nothing has moved."""
    assignment = Assignment.equal(workers=2, each=2)
    with pytest.raises(ValueError, match=sentence):
        act(assignment)
