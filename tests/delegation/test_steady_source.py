"""The rules by which a steady source pairs workers, one test for each."""

import json

from hypothesis import given
from hypothesis import strategies as st

from steelyard.assignment import Assignment, Move
from steelyard.delegation import Report, Signal, SteadyRules
from tests.delegation.reports import BUSY, IDLE, NORMAL, say, source


def test_a_stale_request_is_dropped():
    """A request is valid until the worker's next report, and for two slots at most."""
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 2, w0=NORMAL, w1=BUSY)
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 4, w1=BUSY)


def test_a_request_grows_while_it_is_met():
    """It doubles with each slot, but the taker grows by at most a third per slot."""
    side = SteadyRules().source(Assignment({0: range(10), 1: range(10, 100)}))
    moved = [len(say(side, slot, w0=IDLE, w1=BUSY)) for slot in range(1, 5)]
    assert [1, 2, 4, 5] == moved


def test_a_busy_worker_gives_at_most_half_and_keeps_one():
    side = source(workers=2, each=8)
    for slot in range(1, 10):
        say(side, slot, w0=IDLE, w1=BUSY)
    assert 1 == side.assignment.count(1)


def test_a_normal_worker_takes_if_no_worker_is_idle():
    """A busy worker waits two slots before it gives to a normal worker."""
    side = source(workers=2)
    assert [] == say(side, 1, w0=NORMAL, w1=BUSY)
    assert [Move(19, giver=1, taker=0)] == say(side, 2, w0=NORMAL, w1=BUSY)


def test_a_normal_worker_does_not_get_the_number_that_made_it_busy():
    """A worker that was busy with eleven gets no eleventh for 64 slots, or until it is idle."""
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
    say(side, 4, w0=IDLE, w1=BUSY)  # with ten, the worker is idle, and takes an eleventh
    say(side, 5, w0=IDLE, w1=NORMAL)
    took = [slot for slot in range(6, 20) if say(side, slot, w0=NORMAL, w1=BUSY)]
    assert 7 == took[0]


def test_a_worker_that_is_always_busy_is_paused_and_retried():
    """It loses its single virtual worker, and gets one again after 16 slots."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))
    slot = 0
    while side.assignment.count(0):
        slot += 1
        say(side, slot, w1=IDLE, w0=BUSY)
    assert 8 <= slot <= 10
    retries = [s for s in range(slot + 1, slot + 40) if say(side, s, w1=BUSY)]
    assert slot + 16 == retries[0]
    assert 1 == side.assignment.count(0)


def test_a_worker_is_paused_when_another_report_takes_its_last_virtual_worker():
    """The pause does not depend on the worker whose report led to the move."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))
    for slot in range(1, 9):
        say(side, slot, w1=NORMAL, w0=BUSY)
    assert [Move(0, giver=0, taker=1)] == say(side, 9, w1=IDLE)
    assert [] == say(side, 10, w0=IDLE, w1=BUSY)
    assert [Move(0, giver=1, taker=0)] == say(side, 25, w1=BUSY)


def test_pauses_double_until_a_worker_copes():
    """Each pause is twice as long, up to 1,024 slots; after a normal report it is 16 again."""
    side = SteadyRules().source(Assignment({0: [0], 1: list(range(1, 10))}))

    def next_pause(start):
        slot = start
        while side.assignment.count(0):
            slot += 1
            say(side, slot, w1=IDLE, w0=BUSY)
        lost = slot
        while not side.assignment.count(0):
            slot += 1
            say(side, slot, w1=BUSY)
        return slot - lost, slot

    pauses, slot = [], 0
    for _ in range(9):
        pause, slot = next_pause(slot)
        pauses.append(pause)
    assert [16, 32, 64, 128, 256, 512, 1024, 1024, 1024] == pauses
    say(side, slot + 1, w0=NORMAL)
    assert 16 == next_pause(slot + 1)[0]


def test_a_worker_that_starts_without_virtual_workers_gets_one():
    """A busy worker gives it one at once."""
    side = SteadyRules().source(Assignment({0: [], 1: [0, 1, 2]}))
    assert [Move(2, giver=1, taker=0)] == say(side, 1, w1=BUSY)


def test_a_pause_ends_when_a_worker_takes_over_virtual_workers():
    """Paused workers share those of a removed worker, and their reports count again."""
    side = SteadyRules().source(Assignment({0: [0], 1: [1], 2: range(2, 40)}))
    slot = 0
    while side.assignment.count(0) or side.assignment.count(1):
        slot += 1
        say(side, slot, w2=IDLE, w0=BUSY, w1=BUSY)
    side.remove_worker(2)
    assert say(side, slot + 1, w0=BUSY, w1=IDLE)


def test_a_worker_that_gave_its_last_to_a_new_worker_gets_one_again():
    """A new worker takes from all workers, and may leave some without virtual workers."""
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


def test_reports_of_a_restarted_worker_count():
    """Its clock was far ahead; after the restart its lower slot numbers count."""
    side = source(workers=2)
    say(side, 10**6, w0=IDLE)
    assert [] == say(side, 500, w1=BUSY)  # a request of a future slot is not valid
    assert [] == say(side, 10**6 - 3, w0=BUSY)  # this report is late, and ignored
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
def test_a_busy_worker_is_helped_after_any_events(events):
    """After any reports and changes of workers, a busy worker gives to an idle worker."""
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


def test_a_change_of_workers_drops_all_requests():
    """A busy worker that gave virtual workers to new workers gives no more than it owns."""
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


def test_reports_of_a_whole_slot_drop_earlier_requests():
    """A worker that was idle one slot ago takes none, though the busy report comes first."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=2, each=10))
    assert source.acknowledge_all([(0, Report(1, Signal.IDLE, by=3))]) == []
    now = [(1, Report(2, Signal.BUSY, by=3)), (0, Report(2, Signal.NORMAL))]
    assert source.acknowledge_all(now) == []


def test_busy_workers_share_scarce_room_in_proportion():
    """A slot lasts as long as its busiest worker, so helping only one has no effect."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=3, each=20))
    offers = [(0, Report(1, Signal.BUSY, by=8)), (1, Report(1, Signal.BUSY, by=4))]
    moves = source.acknowledge_all([*offers, (2, Report(1, Signal.IDLE, by=6))])
    assert {2} == {move.taker for move in moves}
    assert [16, 18, 26] == [source.assignment.count(worker) for worker in range(3)]


def test_normal_workers_take_up_to_their_reported_room():
    """They take from busy workers in the same slot; the worker with the most room is first."""
    rules = SteadyRules(proportional=True, patience=1)
    source = rules.source(Assignment.equal(workers=3, each=10))
    rooms = [(1, Report(1, Signal.NORMAL, by=1)), (2, Report(1, Signal.NORMAL, by=2))]
    moves = source.acknowledge_all([(0, Report(1, Signal.BUSY, by=5)), *rooms])
    assert [2, 2, 1] == [move.taker for move in moves]
    assert [7, 11, 12] == [source.assignment.count(worker) for worker in range(3)]


def test_the_saved_names_of_fields_do_not_change():
    """A stream can resume from the state that an older release saved."""
    side = source(workers=2)
    say(side, 1, w0=NORMAL, w1=BUSY)
    saved = json.loads(json.dumps(side.save()))
    assert ["assignment", "last_slots", "standings"] == list(saved)
    assert [[0, 1], [1, 1]] == saved["last_slots"]
    worker, fields = saved["standings"][1]
    assert 1 == worker
    assert fields == {
        "slot": 1,
        "state": "busy",
        "since": 1,
        "step": 1,
        "request": -1,
        "met": False,
        "room": 0,
        "unmet_slots": 1,
        "too_many": 10,
        "too_many_slot": 1,
        "single_busy_slots": 0,
        "traded": 0,
        "traded_slot": -10,
        "retry": -1,
        "pause": 16,
    }
