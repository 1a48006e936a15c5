"""Jobs that are submitted with the wheel run on executors that have only the packages they need.

The driver gets Steelyard from the wheel alone. Each environment of the executors is a virtual
environment with the packages that docs/installing.md lists.
"""

import json
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import pytest

from tests.spark import submitted_job
from tests.spark.standalone import StandaloneCluster
from tests.spark.submitted_job import ROWS, WORKERS
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BATCH = ("numpy", "pyarrow")
STATEFUL = (*BATCH, "pandas", "protobuf")


def run(*command):
    """Run a command that must end well."""
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this project."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A Python with the packages of this one, but without Steelyard and protobuf."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "packages").mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        excluded = ("steelyard", "google", "protobuf", "__editable__", "_virtualenv")
        if not any(name in path.name for name in excluded) and path.suffix != ".pth":
            (folder / "packages" / path.name).symlink_to(path)
    base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}/packages:$PYTHONPATH" exec {base} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A standalone cluster with two workers."""
    with StandaloneCluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def submitted(wheel, driver, cluster, tmp_path_factory):
    """A function that runs operations with these packages on the executors."""

    def submit(packages, *operations):
        folder = tmp_path_factory.mktemp("job")
        python = environment(folder / "executors", packages)
        job = cluster.submit(
            submitted_job.__file__,
            folder,
            *operations,
            settings={
                "spark.sql.shuffle.partitions": str(WORKERS),
                "spark.locality.wait": "0s",
                "spark.task.maxFailures": "1",
                "spark.log.level": "ERROR",
            },
            python=python,
            driver=driver,
            more=["--py-files", wheel],
        )
        assert job.wait(PATIENCE) == 0, cluster.log
        results = json.loads((folder / "results.json").read_text())
        assert results.pop("steelyard")["result"].startswith(str(wheel))
        assert sorted(results) == sorted(operations)
        return results, python

    return submit


def environment(folder, packages):
    """Return the Python of a new virtual environment with these packages only."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    if packages:
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--constraint", ROOT / "requirements.lock", *packages)
    return python


@pytest.fixture(scope="module")
def without_packages(submitted):
    """The results on executors with nothing but Python."""
    native = ("plan", "repartition", "balancer", "join")
    return submitted((), "sees_steelyard", *native, "map_arrow", "pull")


@pytest.fixture(scope="module")
def with_batch_packages(submitted):
    """The results on executors with numpy and pyarrow."""
    work = ("map_arrow", "aggregate", "pull")
    refused = ("sketch", "scheme", "pull_with_state", "delegated", "delegated_map")
    return submitted(BATCH, *work, *refused)


@pytest.fixture(scope="module")
def with_stateful_packages(submitted):
    """The results on executors with pandas and protobuf, too."""
    return submitted(STATEFUL, "apply_in_pandas", "pull_with_state", "delegated", "delegated_map")


def truth():
    """Return all rows: page and id."""
    return sorted(["hot" if i % 2 == 0 else str(i % 50), i] for i in range(ROWS))


@cache
def ids():
    """Return the ids of each page."""
    found = {}
    for page, i in truth():
        found.setdefault(page, []).append(i)
    return found


def result(results, name):
    """Return the result of an operation, which must have one."""
    assert "result" in results[name], results[name]["trace"]
    return results[name]["result"]


def refusal(results, name, packages, python):
    """Check the error of an operation on executors that lack packages; return it."""
    error = results[name]["error"]
    sentence = f"the Python of Spark's tasks ({python} on the host "
    assert error.count(sentence) == 1, error
    assert f"cannot import {packages}, which this job needs: install " in error
    assert f"{python} -m pip install " in error
    return results[name]


def test_native_work_needs_nothing_on_executors(without_packages):
    """Plans, balanced partitions and joins run no Python on executors."""
    results, _ = without_packages
    assert result(results, "sees_steelyard") == [[False]]
    workers, busiest = result(results, "plan")
    assert (workers, busiest) == (WORKERS, pytest.approx(1, abs=0.05))
    sizes, rows = result(results, "repartition")
    assert rows == truth()
    assert max(size for _, size in sizes) < 1.05 * ROWS / WORKERS
    assert result(results, "balancer") == truth()
    assert result(results, "join") == [[page, i, len(ids()[page])] for page, i in truth()]


def test_python_work_needs_numpy_and_pyarrow(with_batch_packages):
    """Functions, exact aggregators and streams without state run with these two packages."""
    results, _ = with_batch_packages
    sums = sorted([page, len(found), sum(found)] for page, found in ids().items())
    assert result(results, "map_arrow") == truth()
    assert result(results, "aggregate") == sums
    assert result(results, "pull") == sums


def test_stateful_work_also_needs_pandas_and_protobuf(with_stateful_packages):
    """Delegated workers run, and aggregators whose states Spark cannot merge."""
    results, _ = with_stateful_packages
    assert result(results, "delegated") == sorted(
        [page, len(found), sum(found)] for page, found in ids().items()
    )
    assert result(results, "delegated_map") == truth()
    counts = [[page, count] for page, count, _ in result(results, "pull_with_state")]
    assert counts == sorted([page, len(found)] for page, found in ids().items())


def test_functions_of_pandas_frames_need_pandas(with_stateful_packages):
    """They run on executors without this package; the parts of the hot key are merged there."""
    results, _ = with_stateful_packages
    sums = sorted([page, len(found), sum(found)] for page, found in ids().items())
    assert result(results, "apply_in_pandas") == sums


@pytest.mark.parametrize("name", ["map_arrow", "pull"])
def test_missing_packages_of_python_work_are_named(without_packages, name):
    """The sentence names both packages, the Python, its host and a command."""
    results, python = without_packages
    refusal(results, name, "numpy and pyarrow", python)


@pytest.mark.parametrize(("name", "package"), [("sketch", "datasketches"), ("scheme", "steelyard")])
def test_a_missing_package_of_a_feature_is_named(with_batch_packages, name, package):
    """The task that first needs a package raises one sentence."""
    results, python = with_batch_packages
    refusal(results, name, package, python)


@pytest.mark.parametrize("name", ["pull_with_state", "delegated", "delegated_map"])
def test_missing_packages_of_stateful_work_are_named_when_it_is_defined(with_batch_packages, name):
    """No query starts, and the error is one sentence."""
    results, python = with_batch_packages
    refused = refusal(results, name, "pandas and protobuf", python)
    assert refused["kind"] == "RuntimeError"
    assert refused["error"].startswith("the Python of Spark's tasks")
    assert "writeStream" not in refused["trace"]
