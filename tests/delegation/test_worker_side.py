"""The worker sides of both delegations: from measurements to states."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.delegation import (
    BusyTime,
    Measurement,
    Memory,
    PaperRules,
    QueueLength,
    Signal,
    SteadyRules,
    Work,
    fair_busy_time,
)
from tests.delegation.reports import BOTH, BUSY, IDLE, NORMAL, at


@BOTH
def test_a_worker_waits_a_slot_between_reports(rules):
    """There is no second report until the slot has passed."""
    worker = rules.worker(slot=60.0)
    assert worker.report(at(1), 10, now=0.0) is not None
    assert worker.report(at(1), 10, now=30.0) is None
    assert worker.report(at(1), 10, now=60.0) is not None


@BOTH
def test_a_clock_that_goes_back_only_delays_a_report(rules):
    """Slot numbers never decrease; the next report comes a slot after the clock was set back."""
    worker = rules.worker(slot=1.0)
    first = worker.report(at(1), 10, now=100.0)
    assert worker.report(at(1), 10, now=50.0) is None
    second = worker.report(at(1), 10, now=51.0)
    assert second.slot == first.slot + 1


@BOTH
def test_slots_are_numbered_by_the_clock(rules):
    """Workers that start at different times agree on the number of a slot."""
    early, late = rules.worker(10.0), rules.worker(10.0)
    for now in (10, 20, 30):
        early.report(at(1), 10, now)
    assert 4 == early.report(at(1), 10, 40).slot == late.report(at(1), 10, 40).slot


@pytest.mark.parametrize(
    ("utilization", "state"), [(0.74, IDLE), (0.75, NORMAL), (0.85, NORMAL), (0.86, BUSY)]
)
def test_the_papers_worker_compares_with_two_thresholds(utilization, state):
    """It is idle below 0.75 and busy above 0.85."""
    assert state is PaperRules().worker(1.0).report(at(utilization), 10, now=1.0).state


@pytest.mark.parametrize(
    ("utilization", "owned", "state"),
    [
        (0.74, 100, IDLE),
        (0.74, 4, NORMAL),  # one more virtual worker would make it busy
        (0.86, 100, BUSY),
        (0.86, 4, NORMAL),  # one less would make it idle
        (0.96, 4, BUSY),  # the utilization is above `overload`
        (0.80, 100, NORMAL),
        (0.0, 0, IDLE),
    ],
)
def test_a_steady_worker_considers_the_load_of_one_virtual_worker(utilization, owned, state):
    """It is idle or busy only if a move would help."""
    assert state is SteadyRules().worker(1.0).report(at(utilization), owned, now=1.0).state


def test_a_steady_worker_smooths_until_its_virtual_workers_change():
    """One unusual slot does not make it idle; a change of its number discards the past."""
    worker = SteadyRules(smoothing=0.3).worker(1.0)
    assert worker.report(at(0.84), 100, now=1).state is NORMAL
    assert worker.report(at(0.6), 100, now=2).state is NORMAL
    assert worker.report(at(0.6), 99, now=3).state is IDLE


@pytest.mark.parametrize(("busy", "state"), [(0.96, IDLE), (1.0, NORMAL), (1.04, BUSY)])
def test_at_saturation_a_steady_worker_compares_with_the_fair_busy_time(busy, state):
    """It is normal within 3 % of the fair busy time."""
    seen = Measurement(arrivals=100, service_time=1, busy=busy)
    assert state is SteadyRules().worker(1.0).report(seen, 100, now=1.0, fair_busy=1.0).state


def test_a_sudden_change_is_not_smoothed():
    """A worker that takes twice as long as before reports the full number at once."""
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


def test_there_is_no_fair_busy_time_without_work():
    """A fair busy time of 0 is rejected."""
    assert fair_busy_time([Measurement(), Measurement(arrivals=5)]) is None
    with pytest.raises(ValueError, match="fair_busy must be a number above 0, got 0"):
        SteadyRules().worker(1.0).report(Measurement(), 1, now=1.0, fair_busy=0)


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
def test_each_measure_defines_the_utilization(measure, expected):
    """The rules use the load measure that is passed."""
    seen = Measurement(arrivals=10, backlog=20, service_time=0.5, busy=3, memory=700)
    assert measure.utilization(seen, seconds=10) == pytest.approx(expected)
    rules = SteadyRules(measure=measure, low=expected - 0.02, high=expected - 0.01)
    assert rules.worker(10.0).report(seen, 100, now=10.0).state is BUSY


@pytest.mark.parametrize("field", ["arrivals", "backlog", "service_time", "busy", "memory"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1])
def test_impossible_measurements_are_rejected(field, value):
    """An invalid measurement raises an error instead of blocking later reports."""
    with pytest.raises(ValueError, match=f"{field} must be a number at least 0, got"):
        Measurement(**{field: value})


@BOTH
@given(
    seen=st.lists(
        st.tuples(st.floats(0, 2), st.integers(0, 30), st.one_of(st.none(), st.floats(0.1, 2)))
    ),
    cut=st.integers(0, 20),
)
def test_a_worker_resumes_exactly(rules, seen, cut):
    """A worker side that is saved as JSON and resumed makes the same reports."""
    straight, stopped = rules.worker(1.0), rules.worker(1.0)
    for i, (utilization, owned, fair_busy) in enumerate(seen):
        if i == cut:
            stopped = rules.resume_worker(json.loads(json.dumps(stopped.save())))
        reports = [
            side.report(at(utilization), owned, i / 2, fair_busy) for side in (straight, stopped)
        ]
        assert reports[0] == reports[1]


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
def test_invalid_settings_are_rejected(make, sentence):
    """The message names the setting, the allowed values and the given value."""
    with pytest.raises(ValueError, match=sentence):
        make()
