"""The table in docs/versions.md shows every feature on every supported version of Spark."""

import json
import runpy
from pathlib import Path

import pytest

from tests.spark.features import FEATURES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "versions"
RUNS = ["3.5-classic"]
RUNS += [f"4.{minor}-{mode}" for minor in range(4) for mode in ("classic", "connect")]


def test_each_version_has_been_tested_in_each_mode():
    """Spark Connect needs Spark 4.0, so Spark 3.5 has one mode."""
    assert sorted(path.stem for path in RESULTS.glob("*.json")) == RUNS


@pytest.mark.parametrize("run", RUNS)
def test_each_feature_ran_or_named_the_version_it_needs(run):
    """`make features` tests new features, and removes those that no longer exist."""
    found = json.loads((RESULTS / f"{run}.json").read_text())
    assert list(found["features"]) == list(FEATURES)
    assert set(found["features"].values()) <= {"yes", "needs 4.0", "needs 4.1"}
    assert f"{found['spark'].rpartition('.')[0]}-{found['mode']}" == run


def test_the_page_shows_the_results():
    """`scripts/features-table` has written the page after the last run."""
    script = runpy.run_path(str(ROOT / "scripts" / "features-table"))
    assert f"\n\n{script['table']()}\n\n" in script["PAGE"].read_text()
