"""The control loop, driven by a model of workers: no Spark, no clock."""

import shutil
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.control.controller import Controller, SlotLength
from steelyard.control.history import Slot
from steelyard.control.reports import (
    SourceReport,
    WorkerReport,
    latency_bins,
    latency_quantile,
)
from steelyard.control.store import ControlStore
from steelyard.delegation import SteadyRules
from steelyard.hashing import spread
from steelyard.plans import Planner
from steelyard.plans.task_sizes import capacities_of_tasks

BUCKETS, ROWS = 2048, 100_000


class Model:
    """Micro-batches at full speed: sources follow the version, workers take their time."""

    def __init__(
        self, speeds, controller, weights=None, clock=float, lag=0, rows=ROWS, by_plan=True
    ):
        self.speeds, self.controller = np.array(speeds, float), controller
        self.weights = np.full(BUCKETS, 1 / BUCKETS) if weights is None else weights
        self.batch, self.random, self.clock = -1, np.random.default_rng(1), clock
        self.lag, self.rows, self.versions, self.by_plan = lag, rows, [], by_plan

    def run(self, batches):
        """The part of all capacity that was used, batch by batch."""
        return [self._one() for _ in range(batches)]

    def _one(self):
        self.batch += 1
        self.versions.append(self.controller.version)
        version = self.versions[max(0, self.batch - self.lag)]
        buckets = self.random.choice(BUCKETS, self.rows, p=self.weights)
        plan = version.plan or Planner(version.owners.size, buckets=BUCKETS).plan
        salts = spread(np.arange(self.rows))
        virtual = plan.route(buckets, salts) if self.by_plan else buckets % version.owners.size
        owners = version.owners[virtual]
        rows = np.bincount(owners, minlength=self.speeds.size)
        busy = rows / self.speeds
        counts = np.bincount(buckets, minlength=BUCKETS).astype(np.float32)
        reports = [
            WorkerReport(self.batch, w, int(n), float(t), 1, ((80, int(n)),))
            for w, (n, t) in enumerate(zip(rows, busy, strict=True))
            if n
        ]
        self.controller.finish_batch(
            self.batch,
            float(busy.max()),
            [SourceReport(self.batch, 0, 0, counts, (("hot", 7),), version.number)],
            reports,
            now=self.clock(self.batch),
        )
        return self.rows / busy.max() / self.speeds.sum()


def zipf(exponent):
    """Weights of buckets, a few of them hot."""
    weights = 1 / np.arange(1, BUCKETS + 1) ** exponent
    return weights / weights.sum()


def controller(workers=8, **settings):
    """A controller of delegated workers."""
    settings = {"virtual_workers": 100, "delegation": True, "buckets": BUCKETS, **settings}
    return Controller(workers, **settings)


def test_slow_workers_keep_what_they_can_do():
    """Two of eight at 30 %: 95 % of all capacity within six slots, and it stays."""
    speeds = [1, 1, 1, 1, 1, 1, 0.3, 0.3]
    used = Model(speeds, controller(), zipf(1.0)).run(20)
    assert used[0] < 0.5
    assert np.mean(used[6:]) >= 0.95
    assert min(used[6:]) >= 0.93


@pytest.mark.parametrize("foresees", [True, False])
@pytest.mark.parametrize("lag", [1, 2])
def test_what_is_heard_late_is_not_done_twice(lag, foresees):
    """Micro-batches that begin before the last one is heard of: slow workers are not stripped."""
    model = Model([1] * 6 + [0.3] * 2, controller(foresees=foresees), zipf(1.0), lag=lag)
    used = model.run(16)
    assert min(used[4 + 3 * lag :]) >= 0.93
    fewest = min(
        worker.virtual_workers for slot in model.controller.history for worker in slot.workers
    )
    assert fewest >= 30, "36 would be fair"


def test_a_normal_worker_is_not_made_busy():
    """Where nobody is idle, those who are neither get no more than would make them fair."""
    speeds = np.ones(24)
    speeds[np.random.default_rng(2).choice(24, 6, replace=False)] = 0.3
    loop = controller(24, virtual_workers=80)
    used = Model(speeds, loop, zipf(1.0), lag=1, rows=400_000).run(24)
    assert np.mean(used[9:]) >= 0.965
    for slot in list(loop.history)[9:]:
        got = np.bincount([taker for _, _, taker in slot.moves], minlength=24)
        for worker in slot.workers:
            if worker.state == "normal":
                assert got[worker.worker] <= max(1, 0.03 * worker.virtual_workers)


@pytest.mark.parametrize("draw", range(3))
def test_what_was_wished_for_a_slot_ago_is_over(draw):
    """Reports of a slot are about the same assignment, whoever is heard first: four slots do."""
    speeds = np.ones(24)
    speeds[np.random.default_rng(draw).choice(24, 6, replace=False)] = 0.3
    loop = controller(24, virtual_workers=80)
    assert min(Model(speeds, loop, zipf(1.0), rows=400_000).run(12)[4:]) >= 0.95


def test_short_slots_are_heard_together():
    """15 ms of work a slot tell nothing; seven of them do, and an odd first one is made up for."""
    model = Model(np.array([1e6] * 6 + [3e5] * 2), controller(), zipf(1.0))
    model.speeds[:6] /= 3  # they have just started
    model.run(1)
    model.speeds[:6] *= 3
    used = model.run(70)
    assert min(used[-10:]) >= 0.93
    moved = [slot.slot for slot in model.controller.history if slot.moves]
    assert moved
    assert min(np.diff([0, *moved])) >= 3


@pytest.mark.parametrize("draw", range(3))
def test_others_that_become_slow_are_helped_together(draw):
    """Heard one micro-batch late, four more do: who is busy shares what room there is."""

    def some_slow(seed):
        speeds = np.ones(24)
        speeds[np.random.default_rng(seed).choice(24, 6, replace=False)] = 0.3
        return speeds

    model = Model(some_slow(draw), controller(24, virtual_workers=80), zipf(1.0), lag=1)
    model.run(8)
    model.speeds = some_slow(draw + 1000)
    used = model.run(8)
    assert used[0] < 0.35
    assert used[3] > 0.7
    assert min(used[4:]) >= 0.92


def test_a_plan_and_delegation_do_not_mend_the_same_thing_twice():
    """Other hot keys are the plan's to mend: nobody moves, and from nothing both are at once."""
    model = Model([5] * 3 + [3] * 5, controller(), zipf(1.2), lag=1)
    assert min(model.run(10)[2:]) >= 0.95
    model.weights = np.roll(model.weights, 99)
    used = model.run(8)
    assert max(used[:2]) < 0.6
    assert min(used[4:]) >= 0.95
    assert not any(slot.moves for slot in list(model.controller.history)[10:])


def test_messages_that_go_by_no_plan_are_not_foreseen():
    """By key alone, whatever the plan says: workers are judged by what they did."""
    used = {
        foresees: Model(
            [1] * 6 + [0.3] * 2, controller(foresees=foresees), zipf(0.5), lag=1, by_plan=False
        ).run(16)
        for foresees in (True, False)
    }
    assert min(used[False][10:]) >= 0.93
    assert max(used[True][10:]) < 0.7, "the plan would have been even"


def test_who_has_had_nothing_is_not_judged():
    """Planned messages, and none of them seen: neither idle nor busy; none planned: idle."""
    loop = Controller(3, 4, delegation=True, buckets=64)
    counts = np.ones(64, np.float32)
    had = [WorkerReport(0, 0, 60, 3.0, 1), WorkerReport(0, 1, 60, 1.0, 1)]
    slot = loop.finish_batch(0, 3.0, [SourceReport(0, 0, 0, counts, version=1)], had, 0.0)
    assert ["busy", "idle", "normal"] == [worker.state for worker in slot.workers]
    assert {1} == {taker for _, _, taker in slot.moves}


def test_three_states_alone_take_longer():
    """The paper's signals do not say by how much: the same end, in more slots."""
    used = Model([1] * 6 + [0.3] * 2, controller(rules=SteadyRules()), zipf(1.0)).run(20)
    assert used[4] < 0.7
    assert min(used[16:]) >= 0.93


def test_capacities_and_hot_keys_that_change_are_followed():
    """From {3,5} to {5,4}, then other keys: above 90 % again within eight slots."""
    model = Model([5, 5, 5] + [1] * 7, controller(10), zipf(1.0))
    assert min(model.run(14)[8:]) >= 0.9
    model.speeds = np.array([4.0] * 5 + [1.0] * 5)
    assert min(model.run(14)[8:]) >= 0.9
    model.weights = np.roll(model.weights, 99)
    assert min(model.run(14)[8:]) >= 0.9


def test_pull_only_plans():
    """Virtual workers are tasks of sizes that are planned for, and nobody moves."""
    tasks = Controller(4, 3, delegation=False, buckets=BUCKETS)
    used = Model(capacities_of_tasks(4, 3), tasks, zipf(1.4)).run(4)
    assert used[0] < 0.6
    assert used[3] > 0.9
    slot = tasks.history[-1]
    assert () == slot.moves
    assert [3] * 4 == [worker.virtual_workers for worker in slot.workers]
    assert {"normal"} == {worker.state for worker in slot.workers}


def test_hints_are_where_it_starts():
    """Capacities that are given are used at once, and still corrected by what is seen."""
    speeds = [1, 1, 1, 0.25]
    used = Model(speeds, controller(4, capacities=[4, 4, 4, 1])).run(10)
    assert min(used[1:]) > 0.85


def test_a_restart_goes_on_where_it_stopped(tmp_path):
    """Plan and assignment are those that were learned, so the version is; then numbers go on."""
    speeds = [1, 1, 1, 0.3]
    before = controller(4, store=ControlStore(tmp_path))
    Model(speeds, before, zipf(1.0)).run(15)
    after = controller(4, store=ControlStore(tmp_path))
    assert after.version.says(before.version.plan, before.version.owners)
    assert after.version.number == before.version.number
    assert min(Model(speeds, after, zipf(1.0)).run(5)) > 0.93
    assert 16 == after.history[0].slot


def test_other_workers_after_a_restart(tmp_path):
    """The counts are still good for as many tasks as there are now."""
    store = ControlStore(tmp_path)
    first = Controller(4, 2, delegation=False, buckets=BUCKETS, store=store)
    Model([1] * 8, first, zipf(1.4)).run(3)
    more = Controller(6, 2, delegation=False, buckets=BUCKETS, store=store)
    assert 12 == more.version.plan.bins
    assert Model([1] * 12, more, zipf(1.4)).run(1)[0] > 0.85


def test_lost_files_are_published_again(tmp_path):
    """A slot after the folder was removed sources have a version to follow."""
    store = ControlStore(tmp_path / "control")
    model = Model([1, 1], controller(2, store=store))
    model.run(3)
    shutil.rmtree(store.address)
    model.run(1)
    assert store.newest().plan is not None
    assert store.latest() == model.controller.version.number


def test_latencies_of_several_slots_are_told_together():
    """A slot with many messages counts for more; none tell nothing."""
    from steelyard.control.history import quantile_of

    model = Model([1, 1], controller(2))
    model.run(2)
    slots = list(model.controller.history)
    assert slots[0].latencies == ((80, ROWS),)
    assert quantile_of(slots, 0.99) == slots[0].p99
    assert quantile_of([], 0.5) is None
    again = Slot.from_json(slots[0].to_json())
    assert again == slots[0]


def test_who_had_nothing_for_a_while_is_not_taken_for_idle(tmp_path):
    """Short slots are heard together: one in which a worker still had nothing does not compare."""
    store = ControlStore(tmp_path)
    loop = controller(4, store=store)
    model = Model([ROWS * 3] * 4, loop, lag=1)  # 80 ms of work a slot
    store.drain([3])
    model.run(3)
    store.drain([])
    model.run(12)
    back = [len(slot.moves) for slot in loop.history if slot.workers[3].state != "drained"]
    assert 100 == back[0]
    assert sum(back[1:]) < 10, "all are alike again"


def test_a_drained_worker_gets_nothing_until_it_is_refilled(tmp_path):
    """By hand, while it runs."""
    store = ControlStore(tmp_path)
    model = Model([1, 1, 1, 1], controller(4, store=store))
    model.run(2)
    store.drain([3])
    model.run(2)
    last = model.controller.history[-1].workers[3]
    assert ("drained", 0, 0) == (last.state, last.messages, last.virtual_workers)
    store.drain([])
    assert min(model.run(12)[8:]) > 0.9
    assert model.controller.history[-1].workers[3].messages > 0
    store.drain([0, 1, 2, 3])
    model.run(2)
    assert ROWS == model.controller.history[-1].messages


def test_reports_that_come_twice_or_late_do_not_count():
    """An executor was lost: the numbers are those of one run."""
    loop = Controller(2, 1, delegation=False, buckets=4)
    once = SourceReport(0, 0, 0, np.array([1, 2, 3, 4], np.float32))
    other = SourceReport(7, 0, 0, np.array([9, 9, 9, 9], np.float32))
    report = WorkerReport(0, 1, 10, 0.5)
    slot = loop.finish_batch(0, 1.0, [once, once, other], [report, report], 0.0)
    assert 10 == slot.messages
    assert np.array([1, 2, 3, 4]).tolist() == loop.version.plan.counts.tolist()
    assert loop.finish_batch(0, 1.0, [once], [report], 0.0) is None
    loop.begin_run()
    assert loop.finish_batch(0, 1.0, [once], [report], 0.0) is not None


def test_slots_of_several_batches_and_of_seconds():
    """Whichever was asked for."""
    by_batches = Controller(1, 1, delegation=False, slot=SlotLength(batches=3), buckets=4)
    ended = [by_batches.finish_batch(b, 1.0, [], [], 0.0) is not None for b in range(6)]
    assert [False, False, True] * 2 == ended
    by_seconds = Controller(1, 1, delegation=False, slot=SlotLength(seconds=2.5), buckets=4)
    ended = [by_seconds.finish_batch(b, 1.0, [], [], 0.0) is not None for b in range(6)]
    assert [False, False, True] * 2 == ended


def test_the_history_reads_as_it_was_written(tmp_path):
    """JSON lines, shares that add up, latencies, hot keys."""
    store = ControlStore(tmp_path)
    model = Model([1, 0.5], controller(2, store=store))
    model.run(3)
    slots = [Slot.from_json(line) for line in store.history()]
    assert list(model.controller.history) == slots
    assert 1 == pytest.approx(sum(worker.share for worker in slots[-1].workers))
    assert 7 / ROWS == slots[0].hot_keys[0].share
    assert 1.06 == pytest.approx(slots[0].p99, rel=0.06)
    assert slots[0].imbalance > slots[-1].imbalance
    fast, slow = (worker.backlog for worker in slots[0].workers)
    assert 0 == fast < slow, "the slower one still has messages when the mean worker has none"


def test_control_files_are_small_and_planning_is_quick(tmp_path):
    """8,192 buckets, 1,000 virtual workers, Zipf 1.0: files below 200 kB."""
    store = ControlStore(tmp_path)
    loop = Controller(10, 100, delegation=True, store=store, buckets=8192)
    counts = np.random.default_rng(0).zipf(2.0, 8192).astype(np.float32)
    for batch in range(5):
        loop.finish_batch(batch, 1.0, [SourceReport(batch, 0, 0, counts)], [], time.time())
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert max(sizes.values()) <= 200_000, sizes


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=50), st.floats(0.01, 1))
@settings(max_examples=50)
def test_quantiles_of_latencies_are_within_a_bin(latencies, quantile):
    """Six percent, from a tenth of a millisecond to a day."""
    found = latency_quantile(latency_bins(np.array(latencies)), quantile)
    exact = sorted(latencies)[max(0, int(np.ceil(quantile * len(latencies))) - 1)]
    assert found == pytest.approx(min(max(exact, 1e-4), 1.06e5), rel=0.13)


def test_reports_travel_as_text():
    """There and back."""
    source = SourceReport(3, 1, 2, np.arange(9, dtype=np.float32), (("a", 4),), 5)
    back = SourceReport.from_json(source.to_json())
    assert (3, 1, 2, 5) == (back.batch, back.source, back.part, back.version)
    assert (("a", 4),) == back.hot
    assert source.counts.tolist() == back.counts.tolist()
    worker = WorkerReport(3, 1, 10, 0.5, 7, ((1, 2), (3, 4)), 99)
    assert worker == WorkerReport.from_json(worker.to_json())
    assert latency_quantile(np.zeros(181, np.int64), 0.5) is None


def test_prometheus_is_told_of_the_newest_slot():
    """On request, on this machine only, until it is closed."""
    from urllib.request import urlopen

    from steelyard.control.prometheus import MetricsServer

    loop = controller(2)
    Model([1, 0.5], loop).run(2)
    with (
        MetricsServer(lambda: loop.history, port=0) as server,
        urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer,
    ):
        text = answer.read().decode()
    assert f"steelyard_messages_total {2 * ROWS:.1f}" in text
    assert 'steelyard_worker_state{state="busy",worker="1"}' in text
    assert 'steelyard_latency_seconds{quantile="0.99",worker="0"}' in text
    busy = loop.history[-1].workers[0].utilisation
    assert f'steelyard_worker_utilisation{{worker="0"}} {busy}' in text


def test_a_clock_that_goes_back_changes_no_decision():
    """Time is for people to read; what is decided depends on the slots alone."""
    speeds = [1, 1, 0.3, 0.5]
    forth = Model(speeds, controller(4))
    back = Model(speeds, controller(4), clock=lambda batch: 1e9 - 3600.0 * batch)
    assert forth.run(12) == back.run(12)
    moves = [slot.moves for slot in forth.controller.history]
    assert moves == [slot.moves for slot in back.controller.history]
    assert any(moves)
    times = [slot.time for slot in back.controller.history]
    assert sorted(times, reverse=True) == times


def test_a_path_that_is_in_use_is_not_written_to(tmp_path):
    """Before a query has claimed it, which a second one cannot."""
    store = ControlStore(tmp_path)
    first = Model([1, 0.5], controller(2, store=store))
    first.run(2)
    store.claim("first")
    before = store.newest().to_json()
    assert controller(3, store=store).version is None
    assert before == store.newest().to_json()
    resumed = controller(2, store=store)
    assert resumed.version.number == store.latest()


def test_totals_go_on_over_restarts(tmp_path):
    """Although only the last slots are remembered."""
    store = ControlStore(tmp_path)
    first = Model([1, 0.5], controller(2, store=store))
    first.run(3)
    second = Model([1, 0.5], controller(2, store=store))
    second.run(2)
    last = second.controller.history[-1]
    assert (5, 5 * ROWS) == (last.slot, last.messages_so_far)
    moves = [len(s.moves) for m in (first, second) for s in m.controller.history]
    assert sum(moves) == last.moves_so_far > 0


@pytest.mark.parametrize(
    "learned",
    [
        {"slots": "many"},
        {"slots": 3, "planner": 7},
        {"slots": 3, "planner": {}},
        {"planner": {"buckets": BUCKETS, "counts": ["x"]}},
        {"planner": {"buckets": BUCKETS, "counts": [1.0]}},
        {"source": {"assignment": {}}},
        {"source": {"assignment": {"workers": [0, 1], "owned": [[0], [0]]}}},
        {"source": []},
        {"moves": None},
    ],
)
@pytest.mark.parametrize("delegation", [True, False])
def test_learned_files_of_a_wrong_shape_are_ignored(tmp_path, caplog, learned, delegation):
    """With a warning, unless they say nothing about this stream: the query starts as new."""
    store = ControlStore(tmp_path)
    store.prepare()
    store.save_learned(learned)
    loop = Controller(2, 10, delegation=delegation, store=store, buckets=BUCKETS)
    fresh = Controller(2, 10, delegation=delegation, buckets=BUCKETS)
    assert fresh.version.says(loop.version.plan, loop.version.owners)
    if "source" not in learned or delegation:
        assert "learned.json cannot be understood" in caplog.text


@pytest.mark.parametrize("name", ["versions", "learned.json", "history.jsonl", "all"])
def test_a_path_that_cannot_be_written_any_more_does_not_stop_the_loop(tmp_path, caplog, name):
    """Something is in the way of a file: one warning for each kind, and slots go on."""
    store = ControlStore(tmp_path / "control")
    store.prepare()
    model = Model([1, 0.5], controller(2, store=store))
    model.run(2)
    path = tmp_path / "control" / ("" if name == "all" else name)
    if path.is_dir():
        shutil.rmtree(path)
        path.touch()
    else:
        path.unlink()
        path.mkdir()
    model.run(3)
    assert 5 == len(model.controller.history)
    assert 4 == model.controller.last_batch
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    assert (3 if name == "all" else 1) == caplog.text.count("cannot be written")
    model.run(1)
    assert store.newest().says(model.controller.version.plan, model.controller.version.owners)
    assert ControlStore(store.address).is_identified_by(store.identity)
    assert store.history()
    assert store.learned()["slots"] == 6
