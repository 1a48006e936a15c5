"""Results on real executors are exact if one is killed, or if this package is not installed."""

import json
import os
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.on_cluster import LARGE, OTHERS, ROWS
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROW_BY_ROW = ["repartition", "map_arrow", "map_arrow_on_files", "whole_light_keys", "balancer"]
WORK = [*ROW_BY_ROW, "aggregate", "join", "full_join"]


# Every step before one operation, and one step before every operation.
UNSTEADY = [
    *(f"{steps}.repartition" for steps in ("sums", "firsts", "lists", "newest", "numbered")),
    *(
        f"duplicates.{operation}"
        for operation in ("repartition", "planned", "map_arrow", "whole_light_keys", "balancer")
    ),
    "duplicates.join",
    "duplicates.aggregate",
    "stream",
    "batches",
]


def on_cluster(folder, names, how="calm", python=sys.executable):
    """Return the results of operations on a new cluster."""
    command = [sys.executable, "-m", "tests.spark.on_cluster", ",".join(names), how, str(folder)]
    env = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    timeout = 2 * PATIENCE  # for ten operations, each with a killed executor
    ran = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads((folder / "results.json").read_text())


def truth():
    """Return the rows that every operation gets."""
    return [["hot" if i % 2 == 0 else str(i % 50), i] for i in range(ROWS)]


def check(results):
    """Compare the exact rows; a count alone would not show lost and duplicate rows."""
    rows = sorted(truth())
    for name in ROW_BY_ROW:
        assert results[name] == rows, name
    assert results["join"] == [[page, i, len(page)] for page, i in rows]
    each, hot = OTHERS // 2, sum(range(0, OTHERS, 2))
    matched = [
        [i, each, each, each, hot] if page == "hot" else [i, 1, 0, 0, None] for page, i in rows
    ]
    unmatched = [-1, each, each, each, hot + each]
    assert results["full_join"] == sorted([unmatched, *matched])
    by_page = {}
    for page, i in rows:
        by_page.setdefault(page, []).append(i)
    assert results["aggregate"] == sorted([p, len(ids), sum(ids)] for p, ids in by_page.items())


def test_a_killed_executor_does_not_change_results(tmp_path):
    """Its shuffle files are lost, rows arrive in another order, and every id occurs once."""
    results = on_cluster(tmp_path, [*WORK, "scheme", "map_arrow_on_large_files"], "kill")
    check(results)
    assert results["scheme"] == results["repartition"]
    assert results["map_arrow_on_large_files"] == [[LARGE, 1, LARGE * (LARGE - 1) // 2]]


def test_a_killed_executor_changes_results_that_are_routed_by_position(tmp_path):
    """The number of rows is right and the rows are not, so the other test can fail."""
    right = sorted(truth())
    for _ in range(10):  # by chance the rows may arrive in the same order again
        found = on_cluster(tmp_path, ["by_position"], "kill")["by_position"]
        assert len(found) == ROWS
        if found != right:
            return
    pytest.fail("ten killed executors changed nothing")


def test_values_that_change_in_a_retry_do_not_route_rows(tmp_path):
    """Every id occurs once, also after steps whose results depend on the order of rows."""
    results = on_cluster(tmp_path, UNSTEADY, "kill")
    aggregated = results.pop("duplicates.aggregate")
    wrong = {}
    for name, rows in results.items():
        ids = Counter(row[1] for row in rows)
        lost, duplicate = ROWS - len(ids), sum(ids.values()) - len(ids)
        if (lost, duplicate) != (0, 0):
            wrong[name] = (lost, duplicate)
    assert wrong == {}
    by_page = {}
    for page, i in truth():
        by_page.setdefault(page, []).append(i)
    assert aggregated == sorted([p, len(ids), sum(ids)] for p, ids in by_page.items())


def test_executors_need_not_have_this_package(tmp_path):
    """A Python installation with all packages but steelyard gives the same results."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "steelyard" not in path.name and not path.name.endswith((".pth", ".egg-link")):
            (packages / path.name).symlink_to(path)
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    without = tmp_path / "python-without"
    without.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {base} "$@"\n')
    without.chmod(0o755)
    results = on_cluster(tmp_path, ["sees_steelyard", *WORK], python=without)
    assert results.pop("sees_steelyard") == [False]
    check(results)
