"""`steelyard stream` and `steelyard demo`: the main job as people start it."""

import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.report.demo import demo_page
from steelyard.spark.demo import Setting, compare

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
    pytest.mark.classic_only(reason="commands find a Spark that runs in their process"),
]


def run(*arguments):
    """The command, on the Spark of the tests."""
    return CliRunner().invoke(
        app,
        ["stream", *map(str, arguments)],
        env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
    )


@pytest.fixture
def files(tmp_path):
    """Three files; half of the rows are of one page."""
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(3):
        ids = list(range(file * 1000, (file + 1) * 1000))
        pages = ["hot" if i % 2 else f"page {i % 50}" for i in ids]
        moments = pa.array([i * 1_000_000 for i in ids], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"page": pages, "id": ids, "at": moments}), folder / f"{file}.pq")
    return folder


def written(folder):
    """Every row that was written."""
    return [row for path in folder.glob("batch=*") for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_files_are_counted_into_files(files, tmp_path, placement):
    """All of them, once; the table of workers is shown at the end."""
    ran = run(
        *("--source", "parquet", "--path", files, "--key", "page", "--files-per-batch", 1),
        *("--agg", "count", "--agg", "sum:id", "--sink", "parquet", "--out", tmp_path / "out"),
        *("--placement", placement, "--control", tmp_path / "control", "--once"),
        *("--checkpoint", tmp_path / "checkpoint"),
    )
    assert ran.exit_code == 0, ran.output
    best = {}
    for row in written(tmp_path / "out"):
        best[row["key"]] = max(best.get(row["key"], (0, 0)), (row["count"], row["sum(id)"]))
    assert (1500, sum(range(1, 3000, 2))) == best["hot"]
    assert (3000, sum(range(3000))) == tuple(map(sum, zip(*best.values(), strict=True)))
    assert "hot: 'hot' 50%" in ran.output
    assert "3,000 messages in 3 slots" in ran.output
    lines = (tmp_path / "control" / "history.jsonl").read_text().splitlines()
    assert [1000, 1000, 1000] == [json.loads(line)["messages"] for line in lines]


def test_windows_and_expressions(files):
    """The key may be an expression; the largest results are shown."""
    ran = run(
        *("--source", "parquet", "--path", files, "--key", "upper(page)", "--once"),
        *("--time", "at", "--window", "1 hour", "--agg", "max:id"),
    )
    assert ran.exit_code == 0, ran.output
    assert "HOT" in ran.output
    assert "2,999" in ran.output or "2999" in ran.output


def test_words_of_text(tmp_path):
    """Lines become words."""
    (tmp_path / "lines.txt").write_text("To be, or not to be\n" * 10)
    ran = run("--source", "text", "--path", tmp_path, "--key", "word", "--once")
    assert ran.exit_code == 0, ran.output
    found = [line.strip(" │").split() for line in ran.output.splitlines() if "│" in line]
    shown = {line[0]: line[-1] for line in found if len(line) == 3}
    assert {"to": "20", "be": "20", "or": "10", "not": "10"} == shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--source", "socket"], "source must be one of kafka, parquet, json, text, rate"),
        (["--source", "parquet"], "source parquet needs --path"),
        (["--source", "kafka"], "source kafka needs --servers and --topic"),
        (["--sink", "parquet"], "sink parquet needs --out"),
        (["--sink", "kafka"], "sink kafka needs --out-servers (or --servers) and --out-topic"),
        (["--agg", "median"], "agg must be count or one of"),
        (["--key", "no such"], "is neither a column nor an expression; the columns are"),
        (["--agg", "sum:nothing"], "nothing"),
        (["--placement", "push"], "placement must be 'pull' or 'delegated', got 'push'"),
        (["--period", "2"], "period is for placement='delegated'"),
        (["--window", "1 hour"], "window needs time"),
    ],
)
def test_bad_arguments_get_a_sentence(spark, arguments, sentence):
    """Before anything starts."""
    key = [] if "--key" in arguments else ["--key", "value"]
    failed = run(*key, *arguments)
    assert failed.exit_code == 2, failed.output
    assert sentence in " ".join(failed.output.replace("│", " ").split())


def test_results_are_not_mixed_with_those_of_another_run(files, tmp_path):
    """Unless it goes on from their checkpoint."""
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--sink", "parquet")
    failed = run(*arguments, "--out", tmp_path / "out", "--once")
    assert failed.exit_code == 2
    assert "has results already" in " ".join(failed.output.replace("│", " ").split())


def test_ctrl_c_is_a_clean_end(tmp_path):
    """In the middle of its work, as a terminal sends it: no failure, and Spark is gone."""
    command = [sys.executable, "-m", "steelyard.cli", "stream", "--key", "value % 10"]
    command += ["--rate", "5000", "--workers", "2", "--master", "local[2]"]
    command += ["--control", str(tmp_path / "control")]
    with (tmp_path / "log").open("wb") as log:
        started = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "COLUMNS": "100", "TERM": "dumb"},
        )
    try:
        deadline = time.time() + 120
        while not list((tmp_path / "control" / "pins").glob("*/*")):  # a task is at work
            assert time.time() < deadline, "it takes too long"
            assert started.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.1)
        time.sleep(8)
        os.killpg(started.pid, signal.SIGINT)
        assert 0 == started.wait(60), (tmp_path / "log").read_text()[-2000:]
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
    text = (tmp_path / "log").read_text()
    assert "Stopping" in text
    assert "failed" not in text
    assert "messages in" in text


def test_the_demo_at_a_small_size(spark, tmp_path):
    """Both ways count everything; the page has their numbers."""
    setting = Setting(workers=4, slow=1, messages=2000, keys=200, service=1e-5)
    seen = []
    runs, keys = compare(spark, tmp_path, setting, (2, 3), lambda name, _: seen.append(name))
    assert [("key grouping", 2), ("consistent grouping", 3)] == [
        (run.name, len(run.slots)) for run in runs
    ]
    assert {2000} == {slot.messages for run in runs for slot in run.slots}
    assert ["key grouping"] * 2 + ["consistent grouping"] * 3 == seen
    page = demo_page(runs, keys)
    assert f"{runs[0].throughput:,.0f}" in page
    assert "data:image/png;base64" in page
