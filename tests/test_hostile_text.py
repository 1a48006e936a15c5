"""Every command prints keys, paths and arguments as plain text, whatever they contain."""

import re

import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.cli import console as cli_console
from steelyard.control.store import ControlStore
from steelyard.printable import printable
from tests.dashboard.model import slot
from tests.hostile import HOSTILE, HOSTILE_BYTES, HOSTILE_NAME, obeyed_by_a_terminal

PLAIN = {"COLUMNS": "2000", "TERMINAL_WIDTH": "2000", "NO_COLOR": "1", "TERM": "dumb"}


@pytest.fixture(autouse=True)
def wide_consoles(monkeypatch):
    """Make all consoles so wide that no line is wrapped."""
    for console in (cli_console.console, cli_console.error_console):
        monkeypatch.setattr(console, "_width", 2000)


def run(*arguments, exit_code=0):
    """Run a command; return its output, which must contain no control characters."""
    done = CliRunner().invoke(app, [*map(str, arguments)], env=PLAIN)
    assert done.exit_code == exit_code, (done.output, done.exception)
    assert [] == obeyed_by_a_terminal(done.output)
    return done.output


@pytest.fixture
def folder(tmp_path):
    """A folder whose path contains markup and control characters."""
    created = tmp_path / HOSTILE_NAME
    created.mkdir(parents=True)
    return created


def test_workers_are_shown_with_a_hostile_key(tmp_path):
    """The hottest keys are in the title of the table."""
    ControlStore(tmp_path).add_history(slot(1, [1, 1], hot=[HOSTILE]).to_json())
    assert f"hot: {HOSTILE[:20]!r} 50%" in run("workers", "show", "--control", tmp_path)


def test_workers_are_shown_with_a_hostile_state(tmp_path):
    """The history may contain any text as a state."""
    ControlStore(tmp_path).add_history(slot(1, [1], states=[HOSTILE]).to_json())
    assert printable(HOSTILE) in run("workers", "show", "--control", tmp_path)


def test_a_simulation_of_hostile_files(folder):
    """The title of the table and of the figure is the file name; the output names the paths."""
    words = folder / r"[bold]$\b^{$.tsv"
    words.write_text("\n".join(f"{1000 + i}\tto be or not to be" for i in range(20)), "utf-8")
    plot, csv = folder / "plot.svg", folder / "all.csv"
    output = run(
        *("simulate", "--input", words, "--format", "words", "--workers", "2"),
        *("--plot", plot, "--csv", csv),
    )
    assert r"cg on 2 workers (equal), [bold]$\b^{$" in output
    assert f"The figure is {printable(plot)}" in output
    assert r"[bold]$\b^{$" in plot.read_text("utf-8")


def test_the_doctor_shows_hostile_bytes_as_text(spark, tmp_path):
    """A binary key may hold any bytes; the page has them as text, too."""
    rows = spark.createDataFrame([(bytearray(HOSTILE_BYTES),)] * 50, "k binary")
    data, page = tmp_path / "keys.parquet", tmp_path / "page.html"
    rows.write.parquet(str(data))
    output = run("doctor", data, "--key", "k", "--workers", "4", "--html", page)
    assert r"\xff\x9b31m\x00\xe2\x82[bold][/x][bold]:boom:\x1b[31m" in output
    assert r"\xff\x9b31m\x00\xe2\x82" in page.read_text("utf-8")
    assert "<script>" not in page.read_text("utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["workers", "show", "--control", "{path}"],
        ["workers", "drain", "1", "--control", "{path}"],
        ["workers", "refill", "1", "--control", "{path}"],
        ["workers", "show", "--control", "ftp:{hostile}"],
        ["dashboard", "--replay", "{path}"],
        ["dashboard", "--control", "s3x://{hostile}"],
        ["dashboard", "--control", "x", "--address", "{hostile}"],
        ["simulate", "{path}"],
        ["simulate", "--dataset", "{hostile}"],
        ["simulate", "--input", "{path}", "--format", "{hostile}"],
        ["simulate", "--input", "{path}", "--format", "words"],
        ["simulate", "--plot", "{path}/x.png"],
        ["simulate", "--then", "{hostile}"],
        ["simulate", "--speeds", "{hostile}"],
        ["compare", "{hostile}"],
        ["compare", "--{hostile}"],
        ["{hostile}"],
        ["workers", "{hostile}"],
        ["--{hostile}"],
        ["reproduce", "{hostile}"],
        ["reproduce", "epsilon", "--data", "{path}"],
        ["generate", "{hostile}", "--out", "{path}"],
        ["doctor", "{path}", "--source", "{hostile}", "--key", "k"],
        ["doctor", "x", "--work", "{hostile}", "--key", "k"],
        ["doctor", "x", "--capacities", "{hostile}", "--key", "k"],
        ["doctor", "README.md", "--key", "k", "--html", "{path}/x.html"],
        ["stream", "--key", "x", "--source", "{hostile}"],
        ["stream", "--key", "x", "--sink", "{hostile}"],
        ["stream", "--key", "x", "--agg", "{hostile}"],
        ["stream", "--key", "x", "--placement", "{hostile}"],
        ["stream", "--key", "x", "--slot", "{hostile}"],
        ["demo", "--html", "{path}/x.html"],
        ["deploy", "--out", "{path}", "--schemes", "{hostile}"],
        ["deploy", "--out", "{path}", "--delays", "{hostile}"],
        ["deploy", "--out", "{path}", "--data", "{path}"],
    ],
    ids=" ".join,
)
def test_an_error_message_shows_hostile_text_as_text(arguments, tmp_path):
    """The message quotes the argument, and the exit code is 2."""
    given = {"path": tmp_path / HOSTILE_NAME, "hostile": HOSTILE}
    output = run(*(argument.format(**given) for argument in arguments), exit_code=2)
    assert "Traceback" not in output
    assert re.search(r"\[/x\]\[bold\]:boom:\\+x1b\[31m", output), output
