"""Sums over a batch become the reports that the control loop reads."""

import numpy as np
import pytest

from steelyard.control.controller import Controller
from steelyard.control.observed_sums import ObservedSums, latency_code
from steelyard.control.reports import latency_bins


def sums(**given):
    """Return sums of a batch with two workers."""
    settings = {
        "batch": 3,
        "workers": 2,
        "buckets": 4,
        "version": 7,
        "counted_buckets": [(1, 20), (3, 5)],
        "counted_latencies": [(latency_code(1, 40), 4), (latency_code(1, 20), 6)],
        "busy": [0.0, 0.5],
    }
    return ObservedSums(**(settings | given))


def test_buckets_are_counted():
    """The report of the sources has the count of every bucket, and the version."""
    report = sums().source_report()
    assert [0, 20, 0, 5] == report.counts.tolist()
    assert (3, 7) == (report.batch, report.version)


def test_every_worker_reports():
    """A worker's messages are those with a latency; a worker without messages reports zero."""
    idle, busy = sums().worker_reports()
    assert (0, 0, 0.0, ()) == (idle.worker, idle.rows, idle.busy, idle.latencies)
    assert (1, 10, 0.5, ((20, 6), (40, 4))) == (busy.worker, busy.rows, busy.busy, busy.latencies)


def test_a_batch_without_messages_reports_nothing():
    """Nothing was counted, and no worker was busy."""
    empty = sums(counted_buckets=[], counted_latencies=[], busy=[0, 0])
    assert not empty.source_report().counts.any()
    assert [0, 0] == [report.rows for report in empty.worker_reports()]


def test_without_service_times_a_longer_queue_means_a_busier_worker():
    """The busy time follows from the delays; the shortest delay is not a queue."""
    fast, slow = ((latency_code(0, 40), 500), (latency_code(1, 80), 500))
    quick, late = sums(counted_latencies=[fast, slow], busy=None, seconds=5.0).worker_reports()
    assert 0 < quick.busy < late.busy


def test_a_batch_without_messages_has_no_delays():
    """Nothing is estimated from nothing."""
    empty = sums(counted_latencies=[], busy=None, seconds=5.0)
    assert [0, 0] == [report.busy for report in empty.worker_reports()]


@pytest.mark.parametrize("speeds", [(100, 100, 100, 25), (100, 300), (50, 50, 50, 50)])
def test_shares_follow_the_speeds_by_queues_alone(speeds):
    """Queues with Poisson arrivals and random service times: no worker stays overloaded."""
    speeds, batch, loads = np.array(speeds, float), 10.0, []
    controller = Controller(len(speeds), 100, delegation=True, epsilon=0.01)
    rng, rate = np.random.default_rng(1), 0.8 * speeds.sum()
    owners = controller.version.owners
    for number in range(20):
        shares = np.bincount(owners, minlength=len(speeds)) / owners.size
        loads.append(float((shares * rate / speeds).max()))
        arrived = rng.poisson(shares * rate * batch)
        counted = []
        for worker, (count, speed) in enumerate(zip(arrived, speeds, strict=True)):
            delays = delays_of(rng, int(count), batch, speed)
            bins = latency_bins(delays)
            counted += [(latency_code(worker, int(b)), int(bins[b])) for b in np.flatnonzero(bins)]
        observed = ObservedSums(
            number, len(speeds), 8192, 0, enumerate(rng.multinomial(1000, [1 / 8192] * 8192)),
            counted, None, batch,
        )  # fmt: skip
        controller.finish_batch(
            number, batch, [observed.source_report()], observed.worker_reports(), now=0.0
        )
        owners = controller.version.owners
    assert max(loads[6:]) < 1, loads


def delays_of(rng, count, batch, speed):
    """Return the delays of messages in a queue with one server, with 10 ms of other delay."""
    arrivals = np.sort(rng.random(count) * batch)
    services = rng.exponential(1 / speed, count)
    end, delays = 0.0, np.zeros(count)
    for i in range(count):
        end = max(end, arrivals[i]) + services[i]
        delays[i] = end - arrivals[i] + 0.01
    return delays
