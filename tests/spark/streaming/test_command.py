"""The commands `steelyard stream` and `steelyard demo`."""

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
    """Run `steelyard stream` on the Spark of the tests."""
    return CliRunner().invoke(
        app,
        ["stream", *map(str, arguments)],
        env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
    )


@pytest.mark.filterwarnings("ignore:rows of a hot key stay together")
def test_hostile_keys_and_columns_are_text(tmp_path):
    """Titles, results and column names show keys as plain text."""
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
def test_markup_in_an_error_is_shown_as_text(spark):
    """The whole error of Spark is shown, and no part of it is interpreted."""
    arguments = ("--rate", "10", "--key", "string(raise_error('[/x] \\u001b[31m [id] gone'))")
    failed = run(*arguments)
    assert failed.exit_code == 1, (failed.output, failed.exception)
    assert "The query failed: " in failed.output
    assert "[/x] \\x1b[31m [id] gone" in failed.output
    assert [] == obeyed_by_a_terminal(failed.output)


@pytest.mark.parametrize("keeps_control", [False, True], ids=["checkpoint only", "control path"])
def test_a_changed_query_is_refused_in_one_sentence(files, tmp_path, keeps_control):
    """The command prints the sentence, and starts no query."""
    arguments = ["--source", "parquet", "--path", files, "--key", "page", "--once"]
    arguments += ["--checkpoint", tmp_path / "checkpoint"]
    arguments += ["--control", tmp_path / "control"] if keeps_control else []
    assert run(*arguments, "--agg", "min:id").exit_code == 0
    pq.write_table(pq.read_table(files / "0.pq"), files / "new.pq")
    refused = run(*arguments, "--agg", "max:id")
    assert refused.exit_code == 2
    was, now = "Min(column='id')", "Max(column='id')"
    assert (
        f"Invalid value: the checkpoint is of a query with the aggregators {was}, and this "
        f"query has {now}: keep them as they were, or use a new checkpoint"
    ) in " ".join(re.sub("[│╭╮╰╯─|+-]", " ", refused.output).split())


def test_a_control_path_in_use_is_refused_in_one_sentence(files, tmp_path, caplog):
    """The command prints the sentence alone; users of Python find it in the log."""
    (tmp_path / "control").mkdir()
    (tmp_path / "control" / "owner").write_text("another")
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--once")
    refused = run(*arguments, "--control", tmp_path / "control")
    assert refused.exit_code == 1
    shown = refused.output[refused.output.index("The query failed") :]
    sentence = f"control: {tmp_path / 'control'} is in use by the query another; give each query"
    assert f"The query failed: {sentence}" in " ".join(shown.split())
    assert "Traceback" not in refused.output
    assert 1 == len(shown.splitlines())
    until(lambda: sentence in caplog.text)


@pytest.fixture
def files(tmp_path):
    """A folder with three files; half of the rows have one page."""
    folder = tmp_path / "in"
    folder.mkdir()
    for file in range(3):
        ids = list(range(file * 1000, (file + 1) * 1000))
        pages = ["hot" if i % 2 else f"page {i % 50}" for i in ids]
        moments = pa.array([i * 1_000_000 for i in ids], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"page": pages, "id": ids, "at": moments}), folder / f"{file}.pq")
    return folder


def written(folder):
    """Return all written rows."""
    return [row for path in folder.glob("batch=*") for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_rows_of_files_are_counted_once_into_files(files, tmp_path, placement):
    """At the end the command shows the table of workers."""
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


def test_the_key_of_a_window_may_be_an_expression(files):
    """The command shows the largest results."""
    ran = run(
        *("--source", "parquet", "--path", files, "--key", "upper(page)", "--once"),
        *("--time", "at", "--window", "1 hour", "--agg", "max:id"),
    )
    assert ran.exit_code == 0, ran.output
    assert "HOT" in ran.output
    assert "2,999" in ran.output or "2999" in ran.output


@pytest.mark.parametrize(("key", "name"), [("page", "page"), ("upper(page)", "key")])
def test_a_column_named_key_can_be_aggregated(tmp_path, key, name):
    """The result of an expression as key is named "key", beside aggregates of another "key"."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"page": ["a", "a", "b"], "key": [5, 7, 6]}), tmp_path / "in" / "0.pq")
    arguments = ("--source", "parquet", "--path", tmp_path / "in", "--key", key, "--once")
    ran = run(*arguments, "--agg", "max:key", "--sink", "parquet", "--out", tmp_path / "out")
    assert ran.exit_code == 0, ran.output
    found = {row[name].lower(): row["max(key)"] for row in written(tmp_path / "out")}
    assert {"a": 7, "b": 6} == found


def test_a_restart_without_new_files_says_so(files, tmp_path):
    """The first run has read all files, and the second resumes from its checkpoint."""
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--once")
    own = ("--control", tmp_path / "control", "--checkpoint", tmp_path / "checkpoint")
    assert "no new messages" not in run(*arguments, *own).output
    again = run(*arguments, *own)
    assert again.exit_code == 0, again.output
    assert "There were no new messages." in again.output


def test_a_run_without_a_finished_slot_says_so(files):
    """The command does not claim that there was nothing to read."""
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--once")
    ran = run(*arguments, "--slot", "1 hour")
    assert ran.exit_code == 0, ran.output
    assert "No slot has ended." in ran.output


def test_a_port_in_use_gets_a_sentence(spark):
    """The command fails before it reads a row."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run("--key", "value", "--metrics-port", port)
    assert failed.exit_code == 2, failed.output
    assert f"metrics-port: port {port} cannot be used" in " ".join(failed.output.split())


def test_lines_of_text_become_words(tmp_path):
    """The words are in lower case and without punctuation."""
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
        (
            ["--placement", "push"],
            "placement must be one of pull, delegated, real-time; got 'push'",
        ),
        (["--period", "2"], "period works only with --placement delegated"),
        (["--window", "1 hour"], "window needs a column of event times"),
    ],
)
def test_bad_arguments_get_a_sentence(spark, arguments, sentence):
    """The command fails before a query starts."""
    key = [] if "--key" in arguments else ["--key", "value"]
    failed = run(*key, *arguments)
    assert failed.exit_code == 2, failed.output
    assert sentence in " ".join(failed.output.replace("│", " ").split())


def test_results_of_another_run_are_not_overwritten(files, tmp_path):
    """A run without the checkpoint of the existing results is refused."""
    (tmp_path / "out" / "batch=0").mkdir(parents=True)
    arguments = ("--source", "parquet", "--path", files, "--key", "page", "--sink", "parquet")
    failed = run(*arguments, "--out", tmp_path / "out", "--once")
    assert failed.exit_code == 2
    assert "has results already" in " ".join(failed.output.replace("│", " ").split())


@contextmanager
def program(log, *arguments):
    """Run a command in a process group of its own, as a terminal does."""
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
    """Send Ctrl-C, and require that the command ends without an error."""
    os.killpg(started.pid, signal.SIGINT)
    assert 0 == started.wait(PATIENCE), log.read_text()[-2000:]
    assert "Stopping" in log.read_text()
    assert "failed" not in log.read_text()


def wait(condition, started, log):
    """Wait until a condition is true, and return its value; the program must still run."""

    def check():
        assert started.poll() is None, log.read_text()

    return until(condition, check)


def page_in(log):
    """Return the address of the page, if it is in the log."""
    found = re.search(r"The page is (http://127[.]0[.]0[.]1:[0-9]+/)", log.read_text())
    return found and found[1]


def shown_bars(page):
    """Return the messages of each worker for each run on the page."""
    # A browser sends its origin; Bokeh's client does not.
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


def test_ctrl_c_ends_a_running_command_without_an_error(tmp_path):
    """The page shows the workers while the command runs."""
    log = tmp_path / "log"
    arguments = ("--key", "value % 10", "--rate", 5000, "--workers", 2, "--master", "local[2]")
    control = tmp_path / "control"
    with program(log, "stream", *arguments, "--control", control, "--ui") as started:
        page = wait(lambda: page_in(log), started, log)
        wait((control / "history.jsonl").exists, started, log)  # a slot has ended
        (messages,) = wait(lambda: _any(shown_bars(page)), started, log)
        assert 2 == len(messages)
        interrupt(started, log)
    assert "messages in" in log.read_text()


def _any(bars):
    """Return the bars if every run has messages."""
    return bars if bars and all(map(any, bars)) else None


def test_the_demo_shows_both_runs_on_a_page(tmp_path):
    """The page stays until Ctrl-C."""
    log = tmp_path / "log"
    small = ("--workers", 2, "--slow", 1, "--messages", 20_000, "--batches", 2)
    with program(log, "demo", *small, "--html", tmp_path / "demo.html", "--ui") as started:
        page = wait(lambda: page_in(log), started, log)
        wait(lambda: "times the throughput of key grouping" in log.read_text(), started, log)
        assert [20_000, 20_000] == [sum(messages) for messages in shown_bars(page)]
        interrupt(started, log)
    assert (tmp_path / "demo.html").exists()


def test_both_runs_of_the_demo_count_all_messages(spark, tmp_path):
    """The HTML page has their throughput."""
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
