"""Queries whose executors do not share the control path, or lose it: an error, or exact results."""

import json
import os
import socket
import subprocess
import sys

import pytest

from tests.spark.streaming.control_on_cluster import PLACEMENTS, UNSHARED, WORK
from tests.spark.streaming.job_on_cluster import EACH, FILES
from tests.spark.streaming.test_faults import _page, add_file, truth
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CASES = [(placement, work) for placement in PLACEMENTS for work in WORK]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files; half of their rows have one key."""
    folder = tmp_path_factory.mktemp("control")
    (folder / "in").mkdir()
    for file in range(FILES):
        add_file(folder, file)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """The results of all cases, which run on one cluster."""
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-m", "tests.spark.streaming.control_on_cluster", str(folder)]
    ran = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize(("placement", "work"), CASES)
def test_a_control_path_that_is_not_shared_is_refused(results, placement, work):
    """The query fails before it writes a row; the error names the folder and the host."""
    found = results[f"{placement} {work} unshared"]
    (error,) = found["errors"]
    host = socket.gethostbyname(socket.gethostname())
    assert f"the folder {UNSHARED} on the host {host} is not the one" in error
    assert "give a path that the driver and all executors share" in error
    assert [] == found["written"]


@pytest.mark.parametrize(("placement", "work"), CASES)
def test_no_row_is_lost_with_the_control_path_and_an_executor(folder, results, placement, work):
    """The micro-batch continues or fails with a clear error; a restart has each row once."""
    found = results[f"{placement} {work} lost"]
    assert found["was_killed"]
    for error in found["errors"]:
        assert "which this micro-batch follows, is not in the folder" in error
        assert f"on the host {socket.gethostname()}" in error
    if work == "map_arrow":
        rows = [[_page(number), number] for number in range(FILES * EACH)]
        assert sorted(rows, key=lambda row: row[1]) == sorted(
            found["written"], key=lambda row: row[1]
        )
        return
    best = {}
    for page, *totals in found["written"]:
        best[page] = max(best.get(page, (0, 0)), tuple(totals))
    assert truth(folder) == best
