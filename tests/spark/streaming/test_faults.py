"""Totals are exact when executors and drivers of streams are killed."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.streaming.job_on_cluster import EACH, FILES
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture
def folder(tmp_path):
    """A folder with files; half of their rows have one key, some have a null key."""
    (tmp_path / "in").mkdir()
    for file in range(FILES):
        add_file(tmp_path, file)
    return tmp_path


def add_file(folder, file):
    """Add the file of this number with a rename, so that a query never reads half a file."""
    ids = range(file * EACH, (file + 1) * EACH)
    table = pa.table({"page": [_page(i) for i in ids], "id": list(ids)})
    pq.write_table(table, folder / f"{file}.parquet")
    (folder / f"{file}.parquet").rename(folder / "in" / f"{file}.parquet")


def _page(number):
    return "hot" if number % 2 == 0 else None if number % 40 == 1 else str(number % 300)


def truth(folder):
    """Return count and sum of every key."""
    totals = {}
    for number in range(len(list((folder / "in").iterdir())) * EACH):
        count, total = totals.get(_page(number), (0, 0))
        totals[_page(number)] = (count + 1, total + number)
    return totals


def written(folder):
    """Return the newest count and sum of every key; both only grow."""
    best = {}
    for batch in (folder / "out").glob("batch=*"):
        for path in batch.glob("*.parquet"):
            columns = pq.read_table(path).to_pydict().values()
            for page, count, total, *_ in zip(*columns, strict=True):
                best[page] = max(best.get(page, (0, 0)), (count, total))
    return best


@contextmanager
def program(folder, *arguments):
    """Run the program in a process group of its own, and kill the group at the end."""
    command = [sys.executable, "-m", "tests.spark.streaming.job_on_cluster", *arguments]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (folder / "log").open("ab") as log:
        started = subprocess.Popen(
            [*command, str(folder)], env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield started
    finally:
        kill(started)


def kill(started):
    """Kill the program and all processes that it has started."""
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def finish(folder, *arguments):
    """Run the program, and require that it ends without an error."""
    with program(folder, *arguments) as started:
        assert started.wait(timeout=PATIENCE) == 0, (folder / "log").read_text()[-3000:]
    assert (folder / "finished").exists()


@pytest.mark.parametrize(
    ("placement", "merged", "control"),
    [("pull", "spark", "here"), ("delegated", "python", "here"), ("delegated", "spark", "remote")],
)
def test_a_killed_executor_and_a_new_version_change_nothing(
    folder, remote, placement, merged, control
):
    """The executor dies and the version appears between two attempts of the tasks."""
    path = remote if control == "remote" else str(folder / "control")
    finish(folder, placement, "executor", merged, path)
    assert (folder / "killed").exists(), "no executor was killed"
    assert truth(folder) == written(folder)


@pytest.mark.parametrize(("placement", "merged"), [("pull", "python"), ("delegated", "spark")])
def test_a_killed_driver_continues_from_its_checkpoint(folder, placement, merged):
    """The driver is killed three times, at random moments of three micro-batches."""
    # If a driver dies while it lists files, a later micro-batch may have two of them.
    for file in range(FILES, FILES + 2):
        add_file(folder, file)
    chance = random.Random(placement)  # noqa: S311
    settings = (placement, "driver", merged, str(folder / "control"))
    for batches in range(3):
        with program(folder, *settings) as started:
            _wait_for_batches(folder, started, batches)
            time.sleep(chance.uniform(0, 2))
            assert started.poll() is None, "the program ended before it was killed"
            kill(started)
        assert not (folder / "finished").exists()
    finish(folder, *settings)
    if _is_within_a_period(folder):
        add_file(folder, FILES + 2)
        finish(folder, *settings)
    assert truth(folder) == written(folder)


def _is_within_a_period(folder):
    """Whether delegated workers hold the last micro-batch: a period has two."""
    commits = (folder / "checkpoint" / "commits").iterdir()
    return len([commit for commit in commits if commit.name.isdigit()]) % 2 == 1


def _wait_for_batches(folder, started, batches):
    """Wait until this many micro-batches are written and the next one has begun."""

    def check():
        assert started.poll() is None, (folder / "log").read_text()[-3000:]

    until((folder / "checkpoint" / "offsets" / str(batches)).exists, check)
