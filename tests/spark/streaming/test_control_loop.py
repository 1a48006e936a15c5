"""Control loops end with their queries, and a fault of one does not affect others."""

import gc
import shutil
import weakref
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import steelyard as sy
from steelyard.control.store import ControlStore
from tests.spark.streaming.running import FILES, group, last_of, run_into, stream_of, table, truth
from tests.waiting import until

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]


def is_gone(reference):
    """Whether an object has been released."""
    gc.collect()
    return reference() is None


def test_a_finished_query_releases_its_controller(spark, rows, files, tmp_path):
    """When the query starts again, a new controller resumes from the control path."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    grouped = group(stream_of(spark, tmp_path / "in"), tmp_path)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    store, controller = grouped.control, weakref.ref(grouped.controller)
    del grouped
    assert is_gone(controller)
    written = []
    for number, part in enumerate(parts, 1):
        shutil.copy(part, tmp_path / "in" / part.name)
        written += run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
        until(lambda: not store.owner())
        assert number == store.learned()["slots"]
        assert number == len(store.history())
    assert truth(rows) == last_of(written)


def test_the_history_of_a_grouping_has_all_runs(spark, files, tmp_path):
    """The history continues when the query starts again."""
    (tmp_path / "in").mkdir()
    grouped = group(stream_of(spark, tmp_path / "in"), tmp_path)
    counts = grouped.aggregate(sy.Count())
    for number, part in enumerate(sorted(Path(files).glob("*.parquet"))[:2], 1):
        shutil.copy(part, tmp_path / "in" / part.name)
        run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
        until(lambda: not grouped.control.owner())
        assert number == len(grouped.history())


def test_the_end_of_a_query_does_not_touch_the_paths_of_others(stream, tmp_path, monkeypatch):
    """The session has run other queries before."""
    earlier = []
    for name in ("first", "second"):
        grouped = group(stream, tmp_path / name)
        table(grouped.aggregate(sy.Count()), tmp_path / f"checkpoint of {name}")
        until(lambda: not grouped.control.owner())  # noqa: B023  # called here and now
        earlier.append(grouped.control.address)
    released = []
    release = ControlStore.release

    def record(store, query):
        released.append(store.address)
        release(store, query)

    monkeypatch.setattr(ControlStore, "release", record)
    last = group(stream, tmp_path / "last")
    table(last.aggregate(sy.Count()), tmp_path / "checkpoint of last")
    until(lambda: last.control.address in released)
    assert set(earlier).isdisjoint(released)


def test_a_failed_restart_says_what_changed(spark, files, tmp_path, caplog):
    """The log names the old and the new aggregators."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))

    def run(part, aggregator):
        shutil.copy(part, tmp_path / "in" / part.name)
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path)
        counts = grouped.aggregate(sy.Count(), aggregator)
        run_into(tmp_path / "out", counts, tmp_path / "checkpoint")

    run(parts[0], sy.Sum("id"))
    until(lambda: not (tmp_path / "control" / "owner").exists())
    with pytest.raises(StreamingQueryException):
        run(parts[1], sy.Mean("id"))
    until(lambda: "Sum(column='id'), and this query has" in caplog.text)


def test_an_unreadable_owner_does_not_affect_the_paths_of_others(stream, tmp_path):
    """A query frees its own path when it ends, even if another path is damaged."""
    damaged = group(stream, tmp_path / "damaged")
    table(damaged.aggregate(sy.Count()), tmp_path / "first checkpoint")
    until(lambda: not damaged.control.owner())
    (tmp_path / "damaged/control/owner").write_bytes(b"\xff\xfe")
    healthy = group(stream, tmp_path / "healthy")
    table(healthy.aggregate(sy.Count()), tmp_path / "second checkpoint")
    until(lambda: not (tmp_path / "healthy/control/owner").exists())


@pytest.mark.faults
def test_a_warning_says_that_sources_do_not_see_versions(spark, rows, files, tmp_path, caplog):
    """A file replaces the folder: results are exact, and the log has a warning."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    grouped = group(stream_of(spark, tmp_path / "in"), tmp_path)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    shutil.copy(parts[0], tmp_path / "in")
    written = run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
    until(lambda: not grouped.control.owner())
    shutil.rmtree(tmp_path / "control")
    (tmp_path / "control").touch()
    for part in parts[1:]:
        shutil.copy(part, tmp_path / "in" / part.name)
    written += run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
    assert truth(rows) == last_of(written)
    until(lambda: len(grouped.history()) == FILES)
    assert 1 == caplog.text.count("sources do not see the versions that the driver writes to")
    assert 1 == caplog.text.count("the newest version cannot be written")


@pytest.mark.faults
@pytest.mark.parametrize("name", ["owner", "versions/000000009.json", "learned.json"])
def test_damaged_files_do_not_stop_a_query(spark, rows, files, tmp_path, name):
    """The files are not text when the query starts: results are exact, and files are replaced."""
    store = ControlStore(tmp_path / "control")
    store.prepare()
    (tmp_path / "control" / name).write_bytes(b"\xff\xfe{")
    grouped = group(stream_of(spark, files), tmp_path)
    written = table(grouped.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "checkpoint")
    assert truth(rows) == last_of(written)
    until(lambda: len(grouped.history()) == FILES)
    assert store.newest() is not None
    assert FILES == store.learned()["slots"]
