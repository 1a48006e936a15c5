"""Streams whose executors and drivers are killed: every total is exact."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.streaming.job_on_cluster import EACH, FILES

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def folder(tmp_path):
    """Files to count, half of them of one key, some of none."""
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        ids = range(file * EACH, (file + 1) * EACH)
        pages = [_page(i) for i in ids]
        table = pa.table({"page": pages, "id": list(ids)})
        pq.write_table(table, tmp_path / "in" / f"{file}.parquet")
    return tmp_path


def _page(number):
    return "hot" if number % 2 == 0 else None if number % 40 == 1 else str(number % 300)


def truth():
    """Count and sum of every key."""
    totals = {}
    for number in range(FILES * EACH):
        count, total = totals.get(_page(number), (0, 0))
        totals[_page(number)] = (count + 1, total + number)
    return totals


def written(folder):
    """What was written last of every key; both only grow."""
    best = {}
    for batch in (folder / "out").glob("batch=*"):
        for path in batch.glob("*.parquet"):
            columns = pq.read_table(path).to_pydict().values()
            for page, count, total, *_ in zip(*columns, strict=True):
                best[page] = max(best.get(page, (0, 0)), (count, total))
    return best


def program(folder, *arguments):
    """The program, in a process group of its own."""
    command = [sys.executable, "-m", "tests.spark.streaming.job_on_cluster", *arguments]
    log = (folder / "log").open("ab")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with log:
        return subprocess.Popen(
            [*command, str(folder)], env=env, stdout=log, stderr=log, start_new_session=True
        )


def finish(started, folder):
    """Wait for its end, which is a good one."""
    try:
        assert started.wait(timeout=400) == 0, (folder / "log").read_text()[-3000:]
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    assert (folder / "finished").exists()


@pytest.mark.parametrize(
    ("placement", "merged", "control"),
    [("pull", "spark", "here"), ("delegated", "python", "here"), ("delegated", "spark", "remote")],
)
def test_a_killed_executor_and_a_new_version_change_nothing(
    folder, remote, placement, merged, control
):
    """In the middle of a micro-batch, between two attempts of its tasks."""
    path = remote if control == "remote" else str(folder / "control")
    finish(program(folder, placement, "executor", merged, path), folder)
    assert (folder / "killed").exists(), "nobody was killed"
    assert truth() == written(folder)


@pytest.mark.parametrize(("placement", "merged"), [("pull", "python"), ("delegated", "spark")])
def test_a_killed_driver_goes_on_from_its_checkpoint(folder, placement, merged):
    """Three times, at random moments of three micro-batches."""
    chance = random.Random(placement)  # noqa: S311
    settings = (placement, "driver", merged, str(folder / "control"))
    for batches in range(3):
        started = program(folder, *settings)
        _wait_for_batches(folder, started, batches)
        time.sleep(chance.uniform(0, 2))
        assert started.poll() is None, "it was over before it could be killed"
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        assert not (folder / "finished").exists()
    finish(program(folder, *settings), folder)
    assert truth() == written(folder)


def _wait_for_batches(folder, started, batches):
    """Until so many are written, and the next one has begun."""
    deadline = time.time() + 120
    offsets = Path(folder) / "checkpoint" / "offsets"
    while not (offsets / str(batches)).exists():
        assert time.time() < deadline, "it takes too long"
        assert started.poll() is None, (folder / "log").read_text()[-3000:]
        time.sleep(0.05)
