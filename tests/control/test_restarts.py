"""Controllers that restart, lose files, or cannot write them."""

import shutil

import pytest

from steelyard.control.controller import Controller
from steelyard.control.store import ControlStore
from tests.control.model import BUCKETS, ROWS, Model, controller, zipf


def test_a_restarted_controller_resumes(tmp_path):
    """It has the same plan, assignment and version, and continues the numbers of slots."""
    speeds = [1, 1, 1, 0.3]
    before = controller(4, store=ControlStore(tmp_path))
    Model(speeds, before, zipf(1.0)).run(15)
    after = controller(4, store=ControlStore(tmp_path))
    assert after.version.matches(before.version.plan, before.version.owners)
    assert after.version.number == before.version.number
    assert min(Model(speeds, after, zipf(1.0)).run(5)) > 0.93
    assert 16 == after.history[0].slot


def test_counts_are_kept_with_another_number_of_workers(tmp_path):
    """A restart with more workers makes a plan from the saved counts."""
    store = ControlStore(tmp_path)
    first = Controller(4, 2, delegation=False, buckets=BUCKETS, store=store)
    Model([1] * 8, first, zipf(1.4)).run(3)
    more = Controller(6, 2, delegation=False, buckets=BUCKETS, store=store)
    assert 12 == more.version.plan.bins
    assert Model([1] * 12, more, zipf(1.4)).run(1)[0] > 0.85


def test_lost_files_are_published_again(tmp_path):
    """One slot after the folder was removed, sources have a version to follow."""
    store = ControlStore(tmp_path / "control")
    model = Model([1, 1], controller(2, store=store))
    model.run(3)
    shutil.rmtree(store.address)
    model.run(1)
    assert store.newest().plan is not None
    assert store.latest() == model.controller.version.number


def test_a_controller_does_not_write_to_a_path_in_use(tmp_path):
    """A second query cannot claim the path, so it must not publish a version."""
    store = ControlStore(tmp_path)
    first = Model([1, 0.5], controller(2, store=store))
    first.run(2)
    store.claim("first")
    before = store.newest().to_json()
    assert controller(3, store=store).version is None
    assert before == store.newest().to_json()
    resumed = controller(2, store=store)
    assert resumed.version.number == store.latest()


def test_totals_include_earlier_runs(tmp_path):
    """Messages, moves and slots are counted since the control path was created."""
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
def test_a_malformed_learned_file_is_ignored(tmp_path, caplog, learned, delegation):
    """The query starts as new, and logs a warning if it needs the malformed part."""
    store = ControlStore(tmp_path)
    store.prepare()
    store.save_learned(learned)
    loop = Controller(2, 10, delegation=delegation, store=store, buckets=BUCKETS)
    fresh = Controller(2, 10, delegation=delegation, buckets=BUCKETS)
    assert fresh.version.matches(loop.version.plan, loop.version.owners)
    if "source" not in learned or delegation:
        assert "learned.json cannot be understood" in caplog.text


@pytest.mark.parametrize("name", ["versions", "learned.json", "history.jsonl", "all"])
def test_an_unwritable_path_does_not_stop_the_control_loop(tmp_path, caplog, name):
    """There is one warning for each kind of file, and slots continue."""
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
    assert store.newest().matches(model.controller.version.plan, model.controller.version.owners)
    assert ControlStore(store.address).is_identified_by(store.identity)
    assert store.history()
    assert store.learned()["slots"] == 6
