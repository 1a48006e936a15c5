"""The control loop, driven by a model of workers without Spark and without a clock."""

import time

import numpy as np
import pytest

from steelyard.control.controller import Controller, SlotLength
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore
from steelyard.delegation import SteadyRules
from steelyard.plans.task_sizes import capacities_of_tasks
from tests.control.model import BUCKETS, ROWS, Model, controller, zipf


def test_slow_workers_get_load_in_proportion_to_their_speed():
    """With two of eight workers at 30 %, 95 % of the capacity is used after six slots."""
    speeds = [1, 1, 1, 1, 1, 1, 0.3, 0.3]
    used = Model(speeds, controller(), zipf(1.0)).run(20)
    assert used[0] < 0.5
    assert np.mean(used[6:]) >= 0.95
    assert min(used[6:]) >= 0.93


@pytest.mark.parametrize("foresees", [True, False])
@pytest.mark.parametrize("lag", [1, 2])
def test_late_reports_do_not_cause_the_same_move_twice(lag, foresees):
    """Slow workers keep a fair share if micro-batches begin before the last one is reported."""
    model = Model([1] * 6 + [0.3] * 2, controller(foresees=foresees), zipf(1.0), lag=lag)
    used = model.run(16)
    assert min(used[4 + 3 * lag :]) >= 0.93
    fewest = min(
        worker.virtual_workers for slot in model.controller.history for worker in slot.workers
    )
    assert fewest >= 30, "36 would be fair"


def test_a_normal_worker_does_not_become_busy():
    """If no worker is idle, normal workers take only up to their fair share."""
    speeds = np.ones(24)
    speeds[np.random.default_rng(2).choice(24, 6, replace=False)] = 0.3
    loop = controller(24, virtual_workers=80)
    used = Model(speeds, loop, zipf(1.0), lag=1, rows=400_000).run(24)
    assert np.mean(used[9:]) >= 0.965
    for slot in list(loop.history)[9:]:
        taken = np.bincount([taker for _, _, taker in slot.moves], minlength=24)
        for worker in slot.workers:
            if worker.state == "normal":
                assert taken[worker.worker] <= max(1, 0.03 * worker.virtual_workers)


@pytest.mark.parametrize("draw", range(3))
def test_requests_of_earlier_slots_are_dropped(draw):
    """All reports of a slot refer to one assignment, so four slots are enough to converge."""
    speeds = np.ones(24)
    speeds[np.random.default_rng(draw).choice(24, 6, replace=False)] = 0.3
    loop = controller(24, virtual_workers=80)
    assert min(Model(speeds, loop, zipf(1.0), rows=400_000).run(12)[4:]) >= 0.95


def test_short_slots_are_judged_together():
    """15 ms of work per slot are too little; seven slots are enough, even after an unusual one."""
    model = Model(np.array([1e6] * 6 + [3e5] * 2), controller(), zipf(1.0))
    model.speeds[:6] /= 3  # these workers have just started
    model.run(1)
    model.speeds[:6] *= 3
    used = model.run(70)
    assert min(used[-10:]) >= 0.93
    moved = [slot.slot for slot in model.controller.history if slot.moves]
    assert moved
    assert min(np.diff([0, *moved])) >= 3


@pytest.mark.parametrize("draw", range(3))
def test_all_slow_workers_are_helped_together(draw):
    """Busy workers share the room of the others, so five micro-batches are enough."""

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
    assert min(used[4:]) >= 0.91


def test_a_change_of_hot_keys_moves_no_virtual_worker():
    """The plan corrects the change; delegation does not correct it a second time."""
    model = Model([5] * 3 + [3] * 5, controller(), zipf(1.2), lag=1)
    assert min(model.run(10)[2:]) >= 0.95
    model.weights = np.roll(model.weights, 99)
    used = model.run(8)
    assert max(used[:2]) < 0.6
    assert min(used[4:]) >= 0.95
    assert not any(slot.moves for slot in list(model.controller.history)[10:])


def test_without_foresight_workers_are_judged_by_their_measured_work():
    """This is needed for messages that do not follow the plan, such as those of key grouping."""
    used = {
        foresees: Model(
            [1] * 6 + [0.3] * 2, controller(foresees=foresees), zipf(0.5), lag=1, by_plan=False
        ).run(16)
        for foresees in (True, False)
    }
    assert min(used[False][10:]) >= 0.93
    assert max(used[True][10:]) < 0.7, "the plan would have been even"


def test_a_worker_without_messages_is_not_judged():
    """The speed of a worker that got none of its planned messages is unknown."""
    loop = Controller(3, 4, delegation=True, buckets=64)
    counts = np.ones(64, np.float32)
    reports = [WorkerReport(0, 0, 60, 3.0, 1), WorkerReport(0, 1, 60, 1.0, 1)]
    slot = loop.finish_batch(0, 3.0, [SourceReport(0, 0, 0, counts, version=1)], reports, 0.0)
    assert ["busy", "idle", "normal"] == [worker.state for worker in slot.workers]
    assert {1} == {taker for _, _, taker in slot.moves}


def test_without_numbers_of_virtual_workers_convergence_takes_longer():
    """The three states of the paper lead to the same result in more slots."""
    used = Model([1] * 6 + [0.3] * 2, controller(rules=SteadyRules()), zipf(1.0)).run(20)
    assert used[4] < 0.7
    assert min(used[16:]) >= 0.93


def test_capacities_and_hot_keys_that_change_are_followed():
    """Utilization is above 90 % eight slots after a change from {3,5} to {5,4}, and of keys."""
    model = Model([5, 5, 5] + [1] * 7, controller(10), zipf(1.0))
    assert min(model.run(14)[8:]) >= 0.9
    model.speeds = np.array([4.0] * 5 + [1.0] * 5)
    assert min(model.run(14)[8:]) >= 0.9
    model.weights = np.roll(model.weights, 99)
    assert min(model.run(14)[8:]) >= 0.9


def test_without_delegation_only_the_plan_changes():
    """Virtual workers are tasks of planned sizes, and none moves."""
    tasks = Controller(4, 3, delegation=False, buckets=BUCKETS)
    used = Model(capacities_of_tasks(4, 3), tasks, zipf(1.4)).run(4)
    assert used[0] < 0.6
    assert used[3] > 0.9
    slot = tasks.history[-1]
    assert () == slot.moves
    assert [3] * 4 == [worker.virtual_workers for worker in slot.workers]
    assert {"normal"} == {worker.state for worker in slot.workers}


def test_given_capacities_are_used_from_the_start():
    """They are still corrected by measurements."""
    speeds = [1, 1, 1, 0.25]
    used = Model(speeds, controller(4, capacities=[4, 4, 4, 1])).run(10)
    assert min(used[1:]) > 0.85


def test_a_worker_without_messages_in_some_slots_is_not_idle(tmp_path):
    """A worker is not compared over slots of which it missed some."""
    store = ControlStore(tmp_path)
    loop = controller(4, store=store)
    model = Model([ROWS * 3] * 4, loop, lag=1)  # 80 ms of work per slot
    store.drain([3])
    model.run(3)
    store.drain([])
    model.run(12)
    back = [len(slot.moves) for slot in loop.history if slot.workers[3].state != "drained"]
    assert 100 == back[0]
    assert sum(back[1:]) < 10, "all workers have equal shares again"


def test_a_drained_worker_gets_no_messages_until_it_is_refilled(tmp_path):
    """A user can drain and refill workers while the query runs."""
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


def test_other_workers_are_drained_while_one_is_refilled(tmp_path):
    """Both happen at the end of the same slot, even if only the refilled worker remains."""
    store = ControlStore(tmp_path)
    model = Model([1, 1, 1, 1], controller(4, store=store))
    store.drain([3])
    model.run(1)
    store.drain([0, 1, 2])
    model.run(2)
    last = model.controller.history[-1]
    assert [0, 0, 0, 400] == [worker.virtual_workers for worker in last.workers]
    assert ["drained"] * 3 == [worker.state for worker in last.workers][:3]


def test_repeated_and_late_reports_are_ignored():
    """The sums are those of one run, even if an executor was lost."""
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


def test_a_slot_lasts_several_micro_batches_or_seconds():
    by_batches = Controller(1, 1, delegation=False, slot=SlotLength(batches=3), buckets=4)
    ended = [by_batches.finish_batch(b, 1.0, [], [], 0.0) is not None for b in range(6)]
    assert [False, False, True] * 2 == ended
    by_seconds = Controller(1, 1, delegation=False, slot=SlotLength(seconds=2.5), buckets=4)
    ended = [by_seconds.finish_batch(b, 1.0, [], [], 0.0) is not None for b in range(6)]
    assert [False, False, True] * 2 == ended


def test_control_files_are_small(tmp_path):
    """With 8,192 buckets and 1,000 virtual workers, each file is at most 200 kB."""
    store = ControlStore(tmp_path)
    loop = Controller(10, 100, delegation=True, store=store, buckets=8192)
    counts = np.random.default_rng(0).zipf(2.0, 8192).astype(np.float32)
    for batch in range(5):
        loop.finish_batch(batch, 1.0, [SourceReport(batch, 0, 0, counts)], [], time.time())
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert max(sizes.values()) <= 200_000, sizes


def test_a_clock_that_goes_back_changes_no_decision():
    """Decisions depend on slots only; the time is recorded for users."""
    speeds = [1, 1, 0.3, 0.5]
    forward = Model(speeds, controller(4))
    backward = Model(speeds, controller(4), clock=lambda batch: 1e9 - 3600.0 * batch)
    assert forward.run(12) == backward.run(12)
    moves = [slot.moves for slot in forward.controller.history]
    assert moves == [slot.moves for slot in backward.controller.history]
    assert any(moves)
    times = [slot.time for slot in backward.controller.history]
    assert sorted(times, reverse=True) == times


def test_a_plan_from_earlier_messages_is_the_first_version_with_a_plan(tmp_path):
    """It is published at once; a controller that has a plan keeps it."""
    store = ControlStore(tmp_path)
    store.prepare()
    controller = Controller(2, 10, delegation=True, store=store, buckets=64)
    assert not controller.has_plan
    controller.plan_from(np.array([640.0] + [10.0] * 63))
    first = store.newest()
    assert controller.has_plan
    assert 0 in first.plan.splits
    controller.plan_from(np.ones(64))
    assert first.number == store.newest().number
