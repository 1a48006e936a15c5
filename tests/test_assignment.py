import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from steelyard.assignment import Assignment, Move


class AssignmentMachine(RuleBasedStateMachine):
    """Any sequence of moves, added workers and removed workers."""

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
        assert sorted(owned) == sorted(move.virtual for move in moves)  # no other one moves
        assert worker not in self.assignment.workers

    @invariant()
    def every_virtual_worker_has_one_owner(self):
        owners = self.assignment.owners
        for worker in self.assignment.workers:
            for virtual in self.assignment.owned(worker):
                assert worker == owners[virtual]
        assert 21 == sum(self.assignment.count(w) for w in self.assignment.workers)

    @invariant()
    def it_resumes_from_json(self):
        saved = json.loads(json.dumps(self.assignment.save()))
        assert self.assignment == Assignment.resume(saved)


TestAssignment = AssignmentMachine.TestCase


@given(st.lists(st.integers(1, 50), min_size=2, max_size=8))
def test_the_others_take_a_removed_workers_part_in_proportion(counts):
    """Each of the others gets its exact part, rounded to a whole virtual worker."""
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    owned = {
        i: range(end - count, end) for i, (count, end) in enumerate(zip(counts, ends, strict=True))
    }
    assignment = Assignment(owned)
    assignment.remove_worker(0)
    rest = sum(counts[1:])
    for worker, count in enumerate(counts[1:], start=1):
        assert abs(assignment.count(worker) - count - counts[0] * count / rest) <= 1


def test_a_removed_worker_can_be_added_again():
    """It keeps its number."""
    assignment = Assignment.equal(workers=3, each=2)
    assignment.remove_worker(1)
    assert [0, 2] == assignment.workers
    moves = assignment.add_worker(1)
    assert [Move(3, giver=0, taker=1), Move(2, giver=2, taker=1)] == moves
    assert [3, 2] == assignment.owned(1)


def test_the_last_worker_takes_all_virtual_workers():
    """Workers without virtual workers share those of a removed worker evenly."""
    assignment = Assignment({0: [], 1: [0, 1, 2]})
    assignment.remove_worker(1)
    assert [2, 1, 0] == assignment.owned(0)


def test_a_copy_is_independent():
    """A move in the copy does not change the original."""
    assignment = Assignment.equal(workers=2, each=2)
    copy = assignment.copy()
    copy.give(0, 1)
    assert assignment != copy
    assert [0, 0, 1, 1] == assignment.owners.tolist()
    assert "Assignment(2 workers, 4 virtual workers, 1 to 3 each)" == repr(copy)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda a: a.give(0, 0), "worker 0 cannot give virtual workers to itself"),
        (lambda a: a.give(0, 9), r"there is no worker 9; the workers are \[0, 1\]"),
        (lambda a: a.give(0, 1, 3), "count must be a whole number, from 0 to 2, got 3"),
        (lambda a: a.add_worker(1), r"worker 1 exists already; the workers are \[0, 1\]"),
        (lambda a: a.add_worker(-1), "worker must be a whole number, at least 0, got -1"),
        (lambda a: a.owned(7), "there is no worker 7"),
        (lambda a: [a.remove_worker(0), a.remove_worker(1)], "worker 1 is the last worker"),
        (lambda _: Assignment({}), "needs at least one worker"),
        (lambda _: Assignment({0: [0, 2]}), "every virtual worker must belong to exactly one"),
        (lambda _: Assignment.equal(0, 1), "workers must be a whole number, at least 1, got 0"),
        (lambda _: Assignment.equal(1, 0), "each must be a whole number, at least 1, got 0"),
    ],
)
def test_invalid_arguments_are_rejected(act, sentence):
    """The error message names the argument and the allowed values."""
    assignment = Assignment.equal(workers=2, each=2)
    with pytest.raises(ValueError, match=sentence):
        act(assignment)
