"""The sums of a slot, for reports in any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.slot_totals import SlotTotals

WORKERS, TASKS, BUCKETS = 3, 2, 4

worker_reports = st.lists(
    st.builds(
        WorkerReport,
        batch=st.just(0),
        worker=st.integers(0, WORKERS * TASKS - 1),
        rows=st.integers(0, 1000),
        busy=st.integers(0, 64).map(float),
        keys=st.integers(0, 9),
        latencies=st.just(((80, 3),)),
        began=st.integers(0, 9).map(float),
        ended=st.integers(9, 20).map(float),
    ),
    unique_by=lambda report: report.worker,
)
source_reports = st.lists(
    st.builds(
        SourceReport,
        batch=st.just(0),
        source=st.integers(0, 3),
        part=st.integers(0, 1),
        counts=st.lists(st.integers(0, 9), min_size=BUCKETS, max_size=BUCKETS).map(
            lambda counts: np.array(counts, np.float32)
        ),
        hot=st.just((("hot", 2),)),
        version=st.integers(0, 9),
    ),
    unique_by=lambda report: (report.source, report.part),
)


def totals_of(*batches):
    """Return the totals of micro-batches of one second, numbered from 0."""
    totals = SlotTotals(WORKERS, TASKS, BUCKETS)
    for number, (sources, workers) in enumerate(batches):
        totals.add(number, 1.0, sources, workers)
    return totals


def sums(totals):
    """Return all results of totals."""
    states, owned = ["normal"] * WORKERS, [TASKS] * WORKERS
    slots = totals.worker_slots(states, owned)
    return totals.counts.tolist(), slots, totals.hot_keys(), totals.working


@given(source_reports, worker_reports, st.randoms())
def test_order_and_repetition_change_nothing(sources, workers, random):
    """If an executor is lost, tasks are repeated and their reports arrive twice."""
    again = sources + sources, workers + workers
    for reports in again:
        random.shuffle(reports)
    assert sums(totals_of((sources, workers))) == sums(totals_of(again))


@given(source_reports, worker_reports)
def test_totals_are_the_sums_of_the_reports(sources, workers):
    """The sums of a worker are those of its tasks."""
    totals = totals_of((sources, workers))
    assert sum(report.rows for report in workers) == totals.messages
    assert sum(report.counts.sum() for report in sources) == totals.counts.sum()
    for worker in range(WORKERS):
        of_worker = [report for report in workers if report.worker % WORKERS == worker]
        assert sum(report.busy for report in of_worker) == totals.busy[worker]
        assert sum(report.keys for report in of_worker) == sums(totals)[1][worker].keys


@given(source_reports, worker_reports, st.sampled_from([-1, 1, 7]))
def test_reports_of_other_micro_batches_are_ignored(sources, workers, batch):
    """Late and early reports change neither the sums nor the version."""
    totals = SlotTotals(WORKERS, TASKS, BUCKETS)
    work = totals.add(batch, 1.0, sources, workers)
    assert 0 == totals.messages == totals.counts.sum() == work.version


@given(worker_reports)
def test_micro_batches_add_up(workers):
    """Two micro-batches with the same work have twice the sums and the same maxima."""
    later = [WorkerReport.from_json(w.to_json().replace("[0", "[1", 1)) for w in workers]
    once, twice = totals_of(([], workers)), totals_of(([], workers), ([], later))
    assert (2 * once.rows).tolist() == twice.rows.tolist()
    assert (2 * once.latencies).tolist() == twice.latencies.tolist()
    assert 2 * once.working == twice.working
    keys = [[slot.keys for slot in sums(totals)[1]] for totals in (once, twice)]
    assert keys[0] == keys[1]


def test_workers_that_do_not_exist_are_ignored():
    """Counts for another number of buckets are ignored too."""
    workers = [WorkerReport(0, worker, 10, 1.0) for worker in (-1, 0, WORKERS * TASKS)]
    totals = totals_of(([SourceReport(0, 0, 0, np.ones(BUCKETS + 1, np.float32))], workers))
    assert (10, 0) == (totals.messages, totals.counts.sum())
