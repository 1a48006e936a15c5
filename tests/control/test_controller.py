"""The control loop, driven by a model of workers: no Spark, no clock."""

import time

import numpy as np
import pytest

from steelyard.control.controller import Controller, SlotLength
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.control.store import ControlStore
from steelyard.delegation import SteadyRules
from steelyard.plans.task_sizes import capacities_of_tasks
from tests.control.model import BUCKETS, ROWS, Model, controller, zipf


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


def test_control_files_are_small_and_planning_is_quick(tmp_path):
    """8,192 buckets, 1,000 virtual workers, Zipf 1.0: files below 200 kB."""
    store = ControlStore(tmp_path)
    loop = Controller(10, 100, delegation=True, store=store, buckets=8192)
    counts = np.random.default_rng(0).zipf(2.0, 8192).astype(np.float32)
    for batch in range(5):
        loop.finish_batch(batch, 1.0, [SourceReport(batch, 0, 0, counts)], [], time.time())
    sizes = {path.name: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert max(sizes.values()) <= 200_000, sizes


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
