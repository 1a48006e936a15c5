"""`steelyard stream` and `steelyard demo`: the main job as people start it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from functools import partial
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bokeh.client import pull_session
from tornado.httpclient import HTTPRequest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.deployment.demo import DemoSettings, compare
from steelyard.printable import printable
from steelyard.report.demo import demo_page
from tests.hostile import HOSTILE, obeyed_by_a_terminal
from tests.waiting import PATIENCE, until

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


@pytest.mark.filterwarnings("ignore:rows of a hot key stay together")
def test_hostile_keys_and_columns_are_text(tmp_path):
    """In the title of the workers, in the results and in their columns."""
    (tmp_path / "in").mkdir()
    rows = pa.table({"page": [HOSTILE] * 20 + ["[/y]"], HOSTILE: range(21)})
    pq.write_table(rows, tmp_path / "in" / "0.pq")
    ran = run(
        *("--source", "parquet", "--path", tmp_path / "in", "--key", "page", "--once"),
        *("--agg", f"max:{HOSTILE}"),
    )
    assert ran.exit_code == 0, (ran.output, ran.exception)
    assert [] == obeyed_by_a_terminal(ran.output)
    assert f"hot: {HOSTILE[:20]!r} 95%" in ran.output
    assert printable(HOSTILE)[:39] + "…" in ran.output
    assert "[/y]" in ran.output
    assert "max([/x][bold]:boom:" in ran.output


@pytest.mark.filterwarnings("ignore:rows of a hot key stay together")
def test_a_failure_that_looks_like_markup_is_text(spark):
    """All that Spark says of it is there, and nothing else."""
    arguments = ("--rate", "10", "--key", "string(raise_error('[/x] \\u001b[31m [id] gone'))")
    failed = run(*arguments)
    assert failed.exit_code == 1, (failed.output, failed.exception)
    assert "The query failed: " in failed.output
    assert "[/x] \\x1b[31m [id] gone" in failed.output
    assert [] == obeyed_by_a_terminal(failed.output)


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
        best[row["page"]] = max(best.get(row["page"], (0, 0)), (row["count"], row["sum(id)"]))
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


@pytest.mark.parametrize(("key", "name"), [("page", "page"), ("upper(page)", "key_")])
def test_a_column_named_key_stays_what_it_is(tmp_path, key, name):
    """Of the data, if the key is another one: it can be aggregated."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"page": ["a", "a", "b"], "key": [5, 7, 6]}), tmp_path / "in" / "0.pq")
    arguments = ("--source", "parquet", "--path", tmp_path / "in", "--key", key, "--once")
    ran = run(*arguments, "--agg", "max:key", "--sink", "parquet", "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    found = {row[name].lower(): row["max(key)"] for row in written(tmp_path / "out")}
    assert {"a": 7, "b": 6} == found


def test_nothing_new_is_told(files, tmp_path):
    """Started again from its checkpoint, when all was read."""
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--once")
    own = ("--control", tmp_path / "control", "--checkpoint", tmp_path / "checkpoint")
    assert "no new messages" not in run(*arguments, *own).output
    again = run(*arguments, *own)
    assert again.exit_code == 0, again.output
    assert "There were no new messages." in again.output


def test_slots_that_have_not_ended_are_told(files):
    """What was read is not nothing."""
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--once")
    ran = run(*arguments, "--slot", "1 hour")
    assert ran.exit_code == 0, ran.output
    assert "No slot has ended." in ran.output


def test_a_port_in_use_gets_a_sentence(spark):
    """Before anything is read."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run("--key", "value", "--metrics-port", port)
    assert failed.exit_code == 2, failed.output
    assert f"port: 127.0.0.1:{port} cannot be used" in " ".join(failed.output.split())


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
        (["--source", "kafka", "--servers", "x:1", "--topic", "t"], "source kafka: "),
        (["--sink", "parquet"], "sink parquet needs --out"),
        (["--sink", "kafka"], "sink kafka needs --out-servers (or --servers) and --out-topic"),
        (["--agg", "median"], "agg must be count or one of"),
        (["--key", "no such"], "is neither a column nor an expression; the columns are"),
        (["--agg", "sum:nothing"], "nothing"),
        (["--placement", "push"], "placement must be one of pull, delegated; got 'push'"),
        (["--period", "2"], "period is for --placement delegated"),
        (["--window", "1 hour"], "window needs a column of event times"),
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


@contextmanager
def program(log, *arguments):
    """A command in a process group of its own, as a terminal starts it."""
    with log.open("wb") as file:
        started = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *map(str, arguments)],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "COLUMNS": "100", "TERM": "dumb"},
        )
    try:
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def interrupt(started, log):
    """Press Ctrl-C, which ends it well."""
    os.killpg(started.pid, signal.SIGINT)
    assert 0 == started.wait(PATIENCE), log.read_text()[-2000:]
    assert "Stopping" in log.read_text()
    assert "failed" not in log.read_text()


def wait(is_so, started, log):
    """Until it is so, and the program still runs; what is so."""

    def check():
        assert started.poll() is None, log.read_text()

    return until(is_so, check)


def page_in(log):
    """Where the page is, once the program has told."""
    told = re.search(r"The page is (http://127[.]0[.]0[.]1:[0-9]+/)", log.read_text())
    return told and told[1]


def shown_bars(page):
    """Messages of each worker, of all runs that a browser would now see on the page."""
    # A browser says of which page it is; Bokeh's client does not by itself.
    as_a_browser = partial(HTTPRequest, headers={"Origin": page.rstrip("/")})
    with (
        patch("bokeh.client.connection.HTTPRequest", as_a_browser),
        closing(pull_session(url=page)) as session,
    ):
        runs = [source.data["messages"] for source in _bars(session.document)]
    return [list(messages) for messages in runs]


def _bars(document):
    names = (f"bars_data_{number}" for number in range(3))
    found = (document.select_one({"name": name}) for name in names)
    return [source for source in found if source is not None]


def test_ctrl_c_is_a_clean_end(tmp_path):
    """In the middle of its work, which was live on a page: no failure, and Spark is gone."""
    log = tmp_path / "log"
    arguments = ("--key", "value % 10", "--rate", 5000, "--workers", 2, "--master", "local[2]")
    control = tmp_path / "control"
    with program(log, "stream", *arguments, "--control", control, "--ui") as started:
        page = wait(lambda: page_in(log), started, log)
        wait((control / "history.jsonl").exists, started, log)  # a slot has ended: bars are due
        (messages,) = wait(lambda: _any(shown_bars(page)), started, log)
        assert 2 == len(messages)
        interrupt(started, log)
    assert "messages in" in log.read_text()


def _any(bars):
    """The bars if every run has some."""
    return bars if bars and all(map(any, bars)) else None


def test_the_demo_on_a_page(tmp_path):
    """Both ways side by side, which stay there until Ctrl-C."""
    log = tmp_path / "log"
    small = ("--workers", 2, "--slow", 1, "--messages", 20_000, "--batches", 2)
    with program(log, "demo", *small, "--html", tmp_path / "demo.html", "--ui") as started:
        page = wait(lambda: page_in(log), started, log)
        wait(lambda: "times the throughput of key grouping" in log.read_text(), started, log)
        assert [20_000, 20_000] == [sum(messages) for messages in shown_bars(page)]
        interrupt(started, log)
    assert (tmp_path / "demo.html").exists()


def test_the_demo_at_a_small_size(spark, tmp_path):
    """Both ways count everything; the page has their numbers."""
    setting = DemoSettings(workers=4, slow=1, messages=2000, keys=200, service=1e-5)
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
