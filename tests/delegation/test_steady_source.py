"""Each rule by which a steady source pairs workers, by itself."""

import json

from hypothesis import given
from hypothesis import strategies as st

from steelyard.assignment import Assignment, Move
from steelyard.delegation import Report, Signal, SteadyRules
from tests.delegation.reports import BUSY, IDLE, NORMAL, say, source


def test_a_stale_request_is_dropped():
    """A steady worker's request lives until its next report, and two slots at most."""
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 2, w0=NORMAL, w1=BUSY)
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 4, w1=BUSY)


def test_a_request_grows_while_it_is_met():
    """Twice as many each slot, but the taker grows by a third of itself at most."""
    side = SteadyRules().source(Assignment({0: range(10), 1: range(10, 100)}))
    moved = [len(say(side, slot, w0=IDLE, w1=BUSY)) for slot in range(1, 5)]
    assert [1, 2, 4, 5] == moved


def test_a_busy_worker_gives_half_at_most_and_keeps_one():
    """However large its step, something is left."""
    side = source(workers=2, each=8)
    for slot in range(1, 10):
        say(side, slot, w0=IDLE, w1=BUSY)
    assert 1 == side.assignment.count(1)


def test_where_nobody_is_idle_a_normal_worker_takes():
    """After two slots in vain a busy worker gives to a normal one."""
    side = source(workers=2)
    assert [] == say(side, 1, w0=NORMAL, w1=BUSY)
    assert [Move(19, giver=1, taker=0)] == say(side, 2, w0=NORMAL, w1=BUSY)


def test_a_normal_worker_is_not_given_what_made_it_busy():
    """Busy with eleven, it is not given an eleventh again for 64 slots, or until it is idle."""
    side = source(workers=2)
    for slot in (1, 2):
        say(side, slot, w0=NORMAL, w1=BUSY)
    assert 11 == side.assignment.count(0)
    say(side, 3, w0=BUSY, w1=IDLE)
    assert 10 == side.assignment.count(0)
    took = [slot for slot in range(4, 80) if say(side, slot, w0=NORMAL, w1=BUSY)]
    assert 68 == took[0]

    side = source(workers=2)
    for slot in (1, 2):
        say(side, slot, w0=NORMAL, w1=BUSY)
    say(side, 3, w0=BUSY, w1=IDLE)
    say(side, 4, w0=IDLE, w1=BUSY)  # ten were too few, and with eleven it is idle now
    say(side, 5, w0=IDLE, w1=NORMAL)
    took = [slot for slot in range(6, 20) if say(side, slot, w0=NORMAL, w1=BUSY)]
    assert 7 == took[0]


def test_a_worker_that_is_always_busy_is_left_alone_and_tried_again():
    """With its single virtual worker taken it rests 16 slots, then gets one back."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))
    slot = 0
    while side.assignment.count(0):
        slot += 1
        say(side, slot, w1=IDLE, w0=BUSY)
    assert 8 <= slot <= 10
    tries = [s for s in range(slot + 1, slot + 40) if say(side, s, w1=BUSY)]
    assert slot + 16 == tries[0]
    assert 1 == side.assignment.count(0)


def test_a_last_virtual_worker_that_another_took_counts_too():
    """Whoever's report led to the trade, the worker that is left with nothing is tried again."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))
    for slot in range(1, 9):
        say(side, slot, w1=NORMAL, w0=BUSY)
    assert [Move(0, giver=0, taker=1)] == say(side, 9, w1=IDLE)
    assert [] == say(side, 10, w0=IDLE, w1=BUSY)
    assert [Move(0, giver=1, taker=0)] == say(side, 25, w1=BUSY)


def test_a_worker_that_copes_is_no_longer_suspect():
    """Each quarantine is twice as long, up to 1,024 slots; after one normal report, 16 again."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))

    def slots_left_alone(start):
        slot = start
        while side.assignment.count(0):
            slot += 1
            say(side, slot, w1=IDLE, w0=BUSY)
        lost = slot
        while not side.assignment.count(0):
            slot += 1
            say(side, slot, w1=BUSY)
        return slot - lost, slot

    waits, slot = [], 0
    for _ in range(9):
        wait, slot = slots_left_alone(slot)
        waits.append(wait)
    assert [16, 32, 64, 128, 256, 512, 1024, 1024, 1024] == waits
    say(side, slot + 1, w0=NORMAL)
    assert 16 == slots_left_alone(slot + 1)[0]


def test_a_worker_that_starts_with_nothing_is_tried():
    """A busy worker lends it one at once."""
    side = SteadyRules().source(Assignment({0: [], 1: [0, 1, 2]}))
    assert [Move(2, giver=1, taker=0)] == say(side, 1, w1=BUSY)


def test_workers_that_inherit_are_no_longer_left_alone():
    """When the last owner leaves, those in quarantine get its virtual workers and are heard."""
    side = SteadyRules().source(Assignment({0: [0], 1: [1], 2: range(2, 40)}))
    slot = 0
    while side.assignment.count(0) or side.assignment.count(1):
        slot += 1
        say(side, slot, w2=IDLE, w0=BUSY, w1=BUSY)
    side.remove_worker(2)
    assert say(side, slot + 1, w0=BUSY, w1=IDLE)


def test_a_worker_that_gave_its_last_to_a_joining_one_is_tried():
    """Joining takes from all; who is left with nothing is not forgotten."""
    side = SteadyRules().source(Assignment({0: [0], 1: [1]}))
    side.add_worker()
    side.add_worker()
    empty = [w for w in side.assignment.workers if not side.assignment.count(w)]
    assert empty
    owner = next(w for w in side.assignment.workers if side.assignment.count(w))
    side.assignment.give(
        next(w for w in (0, 1, 2, 3) if side.assignment.count(w) and w != owner), owner
    )
    assert side.acknowledge(owner, Report(100, BUSY))


def test_a_worker_started_again_is_heard():
    """Its clock was far ahead; after a restart its lower slot numbers count."""
    side = source(workers=2)
    say(side, 10**6, w0=IDLE)
    assert [] == say(side, 500, w1=BUSY)  # a request from the future is not taken for a fresh one
    assert [] == say(side, 10**6 - 3, w0=BUSY)  # this one is only late
    assert [Move(19, giver=1, taker=0)] == say(side, 501, w0=IDLE, w1=BUSY)


@given(
    events=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["join", "leave"]), st.integers(0, 9)),
            st.tuples(st.sampled_from(Signal), st.integers(0, 9)),
        ),
        max_size=150,
    )
)
def test_whatever_happened_a_busy_worker_is_helped(events):
    """After any reports, joins and leaves, work still flows from a busy to an idle worker."""
    side = SteadyRules().source(Assignment.equal(3, 5))
    slot = 0
    for event, number in events:
        workers = side.assignment.workers
        worker = workers[number % len(workers)]
        slot += number % 3
        if event == "join":
            side.add_worker()
        elif event == "leave":
            if len(workers) > 1:
                side.remove_worker(worker)
        else:
            side.acknowledge(worker, Report(slot, event))
    counts = {w: side.assignment.count(w) for w in side.assignment.workers}
    assert 15 == sum(counts.values())
    busiest = max(counts, key=counts.get)
    if counts[busiest] > 1 and len(counts) > 1:
        moved = []
        for later in range(slot + 1, slot + 1100):
            for w in counts:
                moved += side.acknowledge(w, Report(later, BUSY if w == busiest else IDLE))
            if moved:
                break
        assert moved


def test_requests_do_not_outlive_a_change_of_workers():
    """A busy worker from which joining ones took virtual workers gives no more than it has."""
    rules = SteadyRules()
    assignment = Assignment.equal(workers=2, each=50)
    assignment.give(0, 1, 42)
    source = rules.source(assignment)
    for slot in (1, 2):
        source.acknowledge(0, Report(slot, Signal.BUSY))
        source.acknowledge(1, Report(slot, Signal.IDLE))
    source.acknowledge(0, Report(3, Signal.BUSY))
    for _ in range(4):
        source.add_worker()
    source.acknowledge(1, Report(3, Signal.IDLE))
    assert sum(source.assignment.count(w) for w in source.assignment.workers) == 100


def test_a_slot_that_is_reported_as_a_whole_drops_older_requests():
    """Who was idle a slot ago gets nothing, though the busy one is named first."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=2, each=10))
    assert source.acknowledge_all([(0, Report(1, Signal.IDLE, by=3))]) == []
    now = [(1, Report(2, Signal.BUSY, by=3)), (0, Report(2, Signal.NORMAL))]
    assert source.acknowledge_all(now) == []


def test_busy_workers_share_what_room_there_is():
    """To help one of them alone would help nobody: a slot lasts as long as its busiest."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=3, each=20))
    offers = [(0, Report(1, Signal.BUSY, by=8)), (1, Report(1, Signal.BUSY, by=4))]
    moves = source.acknowledge_all([*offers, (2, Report(1, Signal.IDLE, by=6))])
    assert {2} == {move.taker for move in moves}
    assert [16, 18, 26] == [source.assignment.count(worker) for worker in range(3)]


def test_normal_workers_get_as_much_as_they_have_room_for():
    """From busy ones, in the same slot; those with most room first."""
    rules = SteadyRules(proportional=True, patience=1)
    source = rules.source(Assignment.equal(workers=3, each=10))
    rooms = [(1, Report(1, Signal.NORMAL, by=1)), (2, Report(1, Signal.NORMAL, by=2))]
    moves = source.acknowledge_all([(0, Report(1, Signal.BUSY, by=5)), *rooms])
    assert [2, 2, 1] == [move.taker for move in moves]
    assert [7, 11, 12] == [source.assignment.count(worker) for worker in range(3)]


def test_what_is_saved_of_a_worker_keeps_its_names():
    """A stream that goes on with what an older version saved finds every field."""
    side = source(workers=2)
    say(side, 1, w0=NORMAL, w1=BUSY)
    saved = json.loads(json.dumps(side.save()))
    assert ["assignment", "heard", "standings"] == list(saved)
    assert [[0, 1], [1, 1]] == saved["heard"]
    worker, fields = saved["standings"][1]
    assert 1 == worker
    assert fields == {
        "slot": 1,
        "state": "busy",
        "since": 1,
        "step": 1,
        "want": -1,
        "met": False,
        "room": 0,
        "unmet_slots": 1,
        "too_many": 10,
        "too_many_slot": 1,
        "lonely_slots": 0,
        "traded": 0,
        "traded_slot": -10,
        "retry": -1,
        "quarantine": 16,
    }
