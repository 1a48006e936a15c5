"""The built package passes the checks of a package index, and works in an empty environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.package

ROOT = Path(__file__).parents[1]

FIRST_JOB = """
import steelyard as sy
from pyspark.sql import SparkSession

settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
rows = spark.range(4000).selectExpr("if(id % 2 = 0, 'hot', string(id % 70)) AS page", "id")
balanced = sy.repartition(rows, 4, "page")
assert balanced.rdd.getNumPartitions() == 4
assert balanced.count() == 4000
grouped = sy.group_by(rows, "page", workers=4)
found = {row["page"]: row["count"] for row in grouped.aggregate(sy.Count(), sy.Sum("id")).collect()}
assert found["hot"] == 2000, found
seen = grouped.map_arrow(lambda table: table.select(["id"]), "id long")
assert sorted(row["id"] for row in seen.collect()) == list(range(4000))
joined = sy.join(rows, rows.groupBy("page").count(), "page", workers=4)
assert joined.count() == 4000
rows.write.parquet("rows")
stream = spark.readStream.schema(rows.schema).parquet("rows")
counts = sy.group_stream(stream, "page", workers=2).aggregate(sy.Count())
writer = counts.writeStream.outputMode("complete").format("memory").queryName("counts")
writer.trigger(availableNow=True).start().awaitTermination()
assert spark.table("counts").where("page = 'hot'").first()["count"] == 2000
spark.stop()
print("steelyard is", sy.__file__)
"""


def run(*command, **more):
    """Run a command and return its output; a failure shows all of it."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTEST_ADDOPTS")}
    done = subprocess.run(
        [str(part) for part in command],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        **more,
    )
    return done.returncode, done.stdout


def succeed(*command, **more):
    """Run a command that must end well."""
    code, output = run(*command, **more)
    assert code == 0, output[-4000:]
    return output


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source distribution, built from the tracked files alone."""
    folder = tmp_path_factory.mktemp("built")
    source, dist = folder / "source", folder / "dist"
    files = succeed("git", "-C", ROOT, "ls-files", "-z").split("\0")
    for name in filter(None, files):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    succeed(sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, source)
    return dist


@pytest.fixture(scope="module")
def clean_python(built, tmp_path_factory):
    """The Python of an environment with the wheel, the extra `spark`, and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    succeed(sys.executable, "-m", "venv", folder)
    (wheel,) = built.glob("*.whl")
    python = folder / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check", "--constraint", ROOT / "requirements.lock")
    succeed(python, "-m", "pip", "install", *quiet, f"{wheel}[spark]")
    return python


def test_the_files_pass_the_checks_of_a_package_index(built):
    """There are two files, and twine finds no fault with their descriptions."""
    files = sorted(built.iterdir())
    assert [file.suffix for file in files] == [".whl", ".gz"]
    succeed(sys.executable, "-m", "twine", "check", "--strict", *files)


def test_a_first_job_runs_without_the_compiler(clean_python, tmp_path, monkeypatch):
    """Batch calls and streams need neither numba nor a checkout of the project."""
    code, _ = run(clean_python, "-c", "import numba")
    assert code != 0
    job = tmp_path / "job.py"
    job.write_text(FIRST_JOB)
    monkeypatch.setenv("PYSPARK_PYTHON", str(clean_python))  # or Spark takes the system's Python
    output = succeed(clean_python, job, cwd=tmp_path)
    assert f"steelyard is {clean_python.parents[1]}" in output


def test_a_command_that_needs_the_compiler_says_so(clean_python, tmp_path):
    """One sentence names the package and the extra that brings it."""
    command = clean_python.parent / "steelyard"
    assert succeed(command, "--version").startswith("steelyard ")
    code, output = run(command, "compare", "--messages", "1000", cwd=tmp_path)
    assert code == 2
    assert "needs numba" in " ".join(output.replace("│", " ").split())
    assert "Traceback" not in output
