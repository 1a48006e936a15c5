"""What a worker holds for a period and when it sends it on, without Spark."""

from collections import Counter

import pytest

from steelyard.executor.period import Period
from tests.executor.micro_batches import blocks, counts, periodic

MINUTE, HOUR = 60_000_000, 3_600_000_000


def test_a_worker_that_holds_too_much_does_not_wait_for_its_period():
    """New keys in every micro-batch: what it keeps is bounded, and nothing is lost."""
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
    assert 4 <= early <= 10, "not every micro-batch either"


def test_a_worker_sends_on_what_one_micro_batch_brings_too_much():
    """In a micro-batch of several tables too, and merged."""
    worker = periodic(Period(batches=100), most_held=20_000)
    batches = [block for key in range(4000) for block in blocks(f"{key % 1000} {'x' * 90}")]
    kept, made = worker(None, batches, 0, 0)
    assert len(kept) < 25_000
    rest = counts(worker(kept, blocks(), 0, 100)[1])
    assert {4} == set((counts(made) + rest).values())


def test_keys_that_come_again_are_held_however_many_rows_they_have():
    """The bound is of what is kept, not of what came."""
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
def test_what_was_held_is_sent_when_the_period_has_another_length(before, after, times):
    """At once, and once; what comes then waits for the end of a new period."""
    kept, made = periodic(before)(None, blocks("a", "b", latest=times[0]), 0, 8)
    assert not counts(made)
    kept, made = periodic(after)(kept, blocks("a", latest=times[1]), 0, 9)
    assert {"a": 1, "b": 1} == counts(made)
    kept, made = periodic(after)(kept, blocks("c", latest=times[1]), 0, 10)
    assert not counts(made)
    later = None if times[1] is None else times[1] + 2 * HOUR
    _, made = periodic(after)(kept, blocks("d", latest=later), 0, 24)
    assert {"a": 1, "c": 1} == counts(made)


def test_a_worker_without_anything_to_hold_leaves_its_state_as_it_is():
    """With periods of one micro-batch nothing is written to it again."""
    worker = periodic(Period())
    kept, _ = worker(None, blocks("a"), 0, 0)
    assert kept == worker(kept, blocks("b"), 0, 1)[0]
