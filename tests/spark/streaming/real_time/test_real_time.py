"""Queries in Spark's real-time mode, with a real broker."""

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict

import pyspark
import pytest

from steelyard.spark.versions.supported import REAL_TIME, parsed
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(
        parsed(pyspark.__version__) < REAL_TIME, reason="this Spark has no real-time mode"
    ),
]


def found_by(program, folder):
    """Run a program of this folder, and return what it found."""
    command = [sys.executable, "-m", f"tests.spark.streaming.real_time.{program}", str(folder)]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    ran = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The results of native work with a slow worker and a hot key."""
    return found_by("native_work", tmp_path_factory.mktemp("native"))


def test_every_message_is_delivered(native):
    """Every message that the work keeps arrives once, with its key and its value."""
    expected = {
        str(n): "hot" if n % 10 < 3 else f"key {n * 7919 % 500}"
        for n in range(native["sent"])
        if n % 100 != 99
    }
    assert len(expected) == len(native["rows"])
    assert expected == {value: key.partition("@")[0] for key, value in native["rows"]}


def test_a_hot_key_is_split_and_other_keys_are_not(native):
    """The hot key is at several workers; a light key moves only when virtual workers do."""
    workers = defaultdict(set)
    for text, _ in native["rows"]:
        key, _, worker = text.partition("@")
        workers[key].add(worker)
    assert len(workers["hot"]) > 1
    assert 1 == Counter(map(len, workers.values())).most_common(1)[0][0]


def test_the_slow_worker_is_learned(native):
    """The history has the service time of every worker, and the slow one gives work away."""
    first, *_, last = native["history"]
    slow, *others = (worker["service"] for worker in first["workers"])
    assert slow > 2 * max(others)
    assert last["workers"][0]["virtual_workers"] < 0.7 * 100
    assert last["workers"][0]["share"] < 0.7 * first["workers"][0]["share"]


def test_the_history_has_latencies_and_versions(native):
    """Latencies are measured from Kafka's timestamps; every batch but the first has a plan."""
    history = native["history"]
    assert all(0.001 < slot["p50"] <= slot["p99"] < 600 for slot in history)
    assert history[0]["version"] < history[-1]["version"]
    assert json.loads(native["plan"])["plan"] is not None


def test_temporary_columns_do_not_leave(native):
    """The result has the columns of the messages and of the work only."""
    kafka = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert [*kafka, "w", "done"] == native["columns"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("map_arrow", "map_arrow runs Python, which Spark's real-time mode does not"),
        ("map_pandas", "placement=sy.Pull() for any work"),
        ("apply_in_pandas", "apply_in_pandas runs Python"),
        ("a sketch", "use Count, Sum, Min, Max or Mean, or placement=sy.Pull()"),
        ("no aggregator", "needs at least one aggregator"),
        ("dropped columns", "the function must keep all columns"),
        ("no control", "sy.RealTime() needs a control path"),
        ("a weight", "weight has no effect in real-time mode"),
        ("a plan", "routing must be a Balance with sy.RealTime()"),
        ("too many buckets", "buckets must be at most 12,288 with sy.RealTime()"),
        ("a window", "window has no effect in real-time mode"),
        ("a stream to count", "messages must be a batch DataFrame"),
    ],
)
def test_what_cannot_run_is_refused(native, call, sentence):
    """One sentence says why, and names what runs instead."""
    assert sentence in native["refusals"][call]


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The results of an aggregation, merged by a batch job and by a second real-time query."""
    return found_by("merged_totals", tmp_path_factory.mktemp("counted"))


def test_merged_totals_are_exact(counted):
    """Counts, sums, minima, maxima and means are those of Spark itself."""
    assert counted["truth"] == counted["batch"]


def test_a_second_query_merges_the_partial_results(counted):
    """A real-time query with one aggregation gives the same results."""
    assert counted["truth"] == counted["stream"]


def test_a_hot_key_is_counted_by_several_workers(counted):
    """The stateful aggregation runs at the balanced workers: Spark alone has one task for a key."""
    assert len(counted["workers of the hot key"]) > 1
    last = [worker["share"] for worker in counted["history"][-1]["workers"]]
    assert max(last) < 1.3 / len(last)


def test_a_killed_driver_counts_nothing_twice(tmp_path):
    """The driver is killed after the plan has changed; merged totals are those of the messages."""
    found = found_by("restarts", tmp_path)
    assert found["truth"] == found["totals"]
    assert found["sent"] == sum(count for _, count, *_ in found["totals"])
    assert found["written"] > found["sent"], "no message was read twice, so nothing was tested"
    assert all(len(set(versions)) > 1 for versions in found["followed"])


def test_the_guide_runs(tmp_path):
    """All blocks of docs/real-time.md run in order; its totals are those of the messages."""
    found = found_by("guide", tmp_path)
    assert found["blocks"] > 5
    assert ["front page", 500, 9.0] in found["totals"]
