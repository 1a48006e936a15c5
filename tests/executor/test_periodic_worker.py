"""Workers that hold partial states for a period: when they send them on, without Spark."""

from collections import Counter

import pytest

from steelyard.executor.period import Period
from tests.executor.micro_batches import blocks, counts, periodic

MINUTE, HOUR = 60_000_000, 3_600_000_000


def test_a_worker_above_its_limit_sends_before_the_end_of_the_period():
    """With new keys in every micro-batch, its state stays below the limit and no count is lost."""
    worker = periodic(Period(batches=100), most_held=20_000)
    kept, sent, sizes, early = None, Counter(), [], 0
    for batch in range(30):
        pages = [f"{batch} {key} {'x' * 90}" for key in range(40)]
        kept, made = worker(kept, blocks(*pages), 0, batch)
        sent += counts(made)
        sizes.append(len(kept))
        early += bool(counts(made))
    assert 30 * 40 == len(sent) + len(counts(worker(kept, blocks(), 0, 100)[1]))
    assert {1} == set(sent.values())
    assert max(sizes) < 25_000
    assert 4 <= early <= 10, "it sends early in some micro-batches, not in all"


def test_a_worker_sends_within_a_micro_batch_that_exceeds_its_limit():
    """The micro-batch consists of several tables, and their states are merged."""
    worker = periodic(Period(batches=100), most_held=20_000)
    batches = [block for key in range(4000) for block in blocks(f"{key % 1000} {'x' * 90}")]
    kept, made = worker(None, batches, 0, 0)
    assert len(kept) < 25_000
    rest = counts(worker(kept, blocks(), 0, 100)[1])
    assert {4} == set((counts(made) + rest).values())


def test_repeated_keys_are_held_for_the_whole_period():
    """The limit is for the merged states, not for the rows that arrived."""
    worker = periodic(Period(batches=100), most_held=20_000)
    kept = None
    for batch in range(30):
        kept, made = worker(kept, blocks(*[f"{key} {'x' * 90}" for key in range(80)]), 0, batch)
        assert not counts(made)
    assert {30} == set(counts(worker(kept, blocks(), 0, 100)[1]).values())


@pytest.mark.parametrize(
    ("before", "after", "times"),
    [
        (Period(micros=MINUTE), Period(micros=HOUR), (90 * MINUTE, 91 * MINUTE)),
        (Period(micros=HOUR), Period(micros=MINUTE), (90 * MINUTE, 90 * MINUTE)),
        (Period(batches=4), Period(batches=6), (None, None)),
        (Period(batches=6), Period(batches=4), (None, None)),
        (Period(batches=4), Period(micros=HOUR), (None, 90 * MINUTE)),
        (Period(micros=MINUTE), Period(batches=4), (90 * MINUTE, None)),
    ],
)
def test_held_states_are_sent_when_the_length_of_the_period_changes(before, after, times):
    """They are sent in the next micro-batch, once; new rows wait for the end of a new period."""
    kept, made = periodic(before)(None, blocks("a", "b", latest=times[0]), 0, 8)
    assert not counts(made)
    kept, made = periodic(after)(kept, blocks("a", latest=times[1]), 0, 9)
    assert {"a": 1, "b": 1} == counts(made)
    kept, made = periodic(after)(kept, blocks("c", latest=times[1]), 0, 10)
    assert not counts(made)
    later = None if times[1] is None else times[1] + 2 * HOUR
    _, made = periodic(after)(kept, blocks("d", latest=later), 0, 24)
    assert {"a": 1, "c": 1} == counts(made)


def test_a_worker_without_held_states_does_not_change_its_value():
    """With periods of one micro-batch the value in the state store is written once."""
    worker = periodic(Period())
    kept, _ = worker(None, blocks("a"), 0, 0)
    assert kept == worker(kept, blocks("b"), 0, 1)[0]
