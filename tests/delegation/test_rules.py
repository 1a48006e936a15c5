"""Each rule of the delegations by itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.assignment import Assignment, Move
from steelyard.delegation import (
    BusyTime,
    Measurement,
    Memory,
    PaperRules,
    QueueLength,
    Report,
    Signal,
    SteadyRules,
    Work,
    fair_busy_time,
)

IDLE, NORMAL, BUSY = Signal.IDLE, Signal.NORMAL, Signal.BUSY
BOTH = pytest.mark.parametrize("rules", [PaperRules(), SteadyRules()], ids=["paper", "steady"])


def at(utilisation):
    """What a worker sees whose messages take so much of a slot of one second."""
    return Measurement(arrivals=utilisation, service_time=1.0)


def source(rules=None, workers=3, each=10):
    return (rules or SteadyRules()).source(Assignment.equal(workers, each))


def say(side, slot, **states):
    """Let workers w0, w1, ... acknowledge with these states; return the moves."""
    return [
        move
        for name, state in states.items()
        for move in side.acknowledge(int(name[1:]), Report(slot, state))
    ]


# The worker's side


@BOTH
def test_a_worker_waits_a_slot_between_reports(rules):
    """A second report is held back until the slot has passed."""
    worker = rules.worker(slot=60.0)
    assert worker.report(at(1), 10, now=0.0) is not None
    assert worker.report(at(1), 10, now=30.0) is None
    assert worker.report(at(1), 10, now=60.0) is not None


@BOTH
def test_a_clock_that_goes_back_delays_a_report_and_no_more(rules):
    """Slot numbers never fall, and reports go on a slot after the clock was set back."""
    worker = rules.worker(slot=1.0)
    first = worker.report(at(1), 10, now=100.0)
    assert worker.report(at(1), 10, now=50.0) is None
    second = worker.report(at(1), 10, now=51.0)
    assert second.slot == first.slot + 1


@pytest.mark.parametrize(
    ("utilisation", "state"), [(0.74, IDLE), (0.75, NORMAL), (0.85, NORMAL), (0.86, BUSY)]
)
def test_the_papers_worker_compares_with_two_thresholds(utilisation, state):
    """Idle below 0.75, busy above 0.85."""
    assert state is PaperRules().worker(1.0).report(at(utilisation), 10, now=1.0).state


@pytest.mark.parametrize(
    ("utilisation", "owned", "state"),
    [
        (0.74, 100, IDLE),
        (0.74, 4, NORMAL),  # one more would make it busy
        (0.86, 100, BUSY),
        (0.86, 4, NORMAL),  # one less would make it idle
        (0.96, 4, BUSY),  # but this is too much in any case
        (0.80, 100, NORMAL),
        (0.0, 0, IDLE),
    ],
)
def test_a_steady_worker_knows_what_a_virtual_worker_weighs(utilisation, owned, state):
    """It asks only for what would help."""
    assert state is SteadyRules().worker(1.0).report(at(utilisation), owned, now=1.0).state


def test_a_steady_worker_smooths_until_it_owns_other_virtual_workers():
    """One odd slot does not make it idle; a new share makes the past worthless."""
    worker = SteadyRules(smoothing=0.3).worker(1.0)
    assert worker.report(at(0.84), 100, now=1).state is NORMAL
    assert worker.report(at(0.6), 100, now=2).state is NORMAL
    assert worker.report(at(0.6), 99, now=3).state is IDLE


@pytest.mark.parametrize(("busy", "state"), [(0.96, IDLE), (1.0, NORMAL), (1.04, BUSY)])
def test_at_saturation_a_steady_worker_looks_at_what_is_fair(busy, state):
    """Within 3 % of the fair busy time is normal, however busy all of them are."""
    seen = Measurement(arrivals=100, service_time=1, busy=busy)
    assert state is SteadyRules().worker(1.0).report(seen, 100, now=1.0, fair_busy=1.0).state


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (Work(), 0.6),
        (Work(backlog_weight=0), 0.5),
        (Work(backlog_weight=1), 0.7),
        (QueueLength(capacity=40), 0.5),
        (BusyTime(), 0.3),
        (Memory(capacity=1000), 0.7),
    ],
)
def test_measures(measure, expected):
    """The load measure is a setting."""
    seen = Measurement(arrivals=10, backlog=20, service_time=0.5, busy=3, memory=700)
    assert measure.utilisation(seen, seconds=10) == pytest.approx(expected)
    rules = SteadyRules(measure=measure, low=expected - 0.02, high=expected - 0.01)
    assert rules.worker(10.0).report(seen, 100, now=10.0).state is BUSY


# The source's side


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


def test_a_stale_wish_is_dropped():
    """A steady worker's wish lives until its next report, and two slots at most."""
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 2, w0=NORMAL, w1=BUSY)
    side = source()
    say(side, 1, w0=IDLE)
    assert [] == say(side, 4, w1=BUSY)


def test_a_wish_grows_while_it_is_met():
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
    assert [] == say(side, 500, w1=BUSY)  # a wish from the future is not taken for a fresh one
    assert [] == say(side, 10**6 - 3, w0=BUSY)  # this one is only late
    assert [Move(19, giver=1, taker=0)] == say(side, 501, w0=IDLE, w1=BUSY)


@BOTH
def test_slots_are_numbered_by_the_clock(rules):
    """Workers that started at other times agree on the number of a slot."""
    early, late = rules.worker(10.0), rules.worker(10.0)
    for now in (10, 20, 30):
        early.report(at(1), 10, now)
    assert 4 == early.report(at(1), 10, 40).slot == late.report(at(1), 10, 40).slot


@pytest.mark.parametrize("field", ["arrivals", "backlog", "service_time", "busy", "memory"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1])
def test_impossible_measurements_are_refused(field, value):
    """A worker that measured nonsense is told so, rather than silenced by it."""
    with pytest.raises(ValueError, match=f"{field} must be a number at least 0, got"):
        Measurement(**{field: value})


def test_no_report_is_no_news():
    """A worker in its first slot acknowledges without a report."""
    assert [] == source().acknowledge(0, None)


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


def test_nothing_done_has_no_fair_time():
    """Without work there is nothing to compare with."""
    assert fair_busy_time([Measurement(), Measurement(arrivals=5)]) is None
    with pytest.raises(ValueError, match="fair_busy must be a number above 0, got 0"):
        SteadyRules().worker(1.0).report(Measurement(), 1, now=1.0, fair_busy=0)


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
@given(
    seen=st.lists(
        st.tuples(st.floats(0, 2), st.integers(0, 30), st.one_of(st.none(), st.floats(0.1, 2)))
    ),
    cut=st.integers(0, 20),
)
def test_a_worker_resumes_exactly(rules, seen, cut):
    """Saved as JSON at any moment, it reports on as if nothing had happened."""
    straight, stopped = rules.worker(1.0), rules.worker(1.0)
    for i, (utilisation, owned, fair_busy) in enumerate(seen):
        if i == cut:
            stopped = rules.resume_worker(json.loads(json.dumps(stopped.save())))
        told = [
            side.report(at(utilisation), owned, i / 2, fair_busy) for side in (straight, stopped)
        ]
        assert told[0] == told[1]


@BOTH
@given(reports=REPORTS)
def test_nothing_moves_without_a_busy_worker(rules, reports):
    """Normal reports move nothing; idle ones only where a busy worker waits: nobody need wait."""
    side = source(rules, workers=5)
    slot = 0
    for worker, later, state in reports:
        slot += later
        stirred = side.is_stirred
        moves = side.acknowledge(worker, Report(slot, state))
        assert not moves or state is BUSY or (state is IDLE and stirred)
        assert stirred or state is BUSY or not side.is_stirred


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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SteadyRules(low=0), "low must be a number above 0, got 0"),
        (lambda: PaperRules(low=0.9), "high must be above low, 0.9, got 0.85"),
        (lambda: SteadyRules(overload=0.5), "overload must be a number at least 0.85, got 0.5"),
        (lambda: SteadyRules(smoothing=0), "smoothing must be .* above 0 and at most 1, got 0"),
        (lambda: SteadyRules(patience=0), "patience must be a whole number, at least 1, got 0"),
        (lambda: SteadyRules(band=0), "band must be a number above 0 and at most 1, got 0"),
        (lambda: SteadyRules().worker(0), "slot must be a number above 0, got 0"),
        (lambda: QueueLength(0), "capacity must be a number above 0, got 0"),
        (lambda: Memory(-1), "capacity must be a number above 0, got -1"),
        (lambda: Work(backlog_weight=2), "backlog_weight must be .* at most 1, got 2"),
        (lambda: Work(most_backlog=-1), "most_backlog must be a number at least 0, got -1"),
    ],
)
def test_bad_settings(make, sentence):
    """The sentence says what is wrong and what would be right."""
    with pytest.raises(ValueError, match=sentence):
        make()


def test_wishes_do_not_outlive_a_change_of_workers():
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


def test_a_slot_that_is_heard_as_a_whole_knows_no_older_wishes():
    """Who was idle a slot ago gets nothing, though the busy one is named first."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=2, each=10))
    assert source.acknowledge_all([(0, Report(1, Signal.IDLE, by=3))]) == []
    now = [(1, Report(2, Signal.BUSY, by=3)), (0, Report(2, Signal.NORMAL))]
    assert source.acknowledge_all(now) == []


def test_busy_workers_share_what_room_there_is():
    """To help one of them alone would help nobody: a slot lasts as long as its busiest."""
    source = SteadyRules(proportional=True).source(Assignment.equal(workers=3, each=20))
    wishes = [(0, Report(1, Signal.BUSY, by=8)), (1, Report(1, Signal.BUSY, by=4))]
    moves = source.acknowledge_all([*wishes, (2, Report(1, Signal.IDLE, by=6))])
    assert {2} == {move.taker for move in moves}
    assert [16, 18, 26] == [source.assignment.count(worker) for worker in range(3)]


def test_a_sudden_change_is_no_noise():
    """A worker that takes twice as long as before says so at once, by all that it has too many."""
    side = SteadyRules(proportional=True).worker(1.0)
    for slot in range(1, 4):
        report = side.report(Measurement(100, busy=1.0), 40, float(slot), fair_busy=1.0)
        assert Signal.NORMAL is report.state
    report = side.report(Measurement(100, busy=2.0), 40, 4.0, fair_busy=1.0)
    assert (Signal.BUSY, 20) == (report.state, report.by)
    calm = SteadyRules(proportional=True).worker(1.0)
    calm.report(Measurement(100, busy=1.0), 40, 1.0, fair_busy=1.0)
    report = calm.report(Measurement(100, busy=1.15), 40, 2.0, fair_busy=1.0)
    assert 2 == report.by, "0.3 of 15 % of 40"


def test_normal_workers_get_as_much_as_they_have_room_for():
    """From busy ones, in the same slot; those with most room first."""
    rules = SteadyRules(proportional=True, patience=1)
    source = rules.source(Assignment.equal(workers=3, each=10))
    rooms = [(1, Report(1, Signal.NORMAL, by=1)), (2, Report(1, Signal.NORMAL, by=2))]
    moves = source.acknowledge_all([(0, Report(1, Signal.BUSY, by=5)), *rooms])
    assert [2, 2, 1] == [move.taker for move in moves]
    assert [7, 11, 12] == [source.assignment.count(worker) for worker in range(3)]
