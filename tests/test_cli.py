"""The commands: help, examples, output and errors."""

import re
import shlex
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import csv
from typer.testing import CliRunner

import steelyard
from steelyard import schemes
from steelyard.cli import app


def run(*arguments):
    return CliRunner().invoke(
        app, arguments, env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    )


def test_version():
    """--version prints the version of the package."""
    assert f"steelyard {steelyard.__version__}\n" == run("--version").stdout


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], []])
def test_help_has_examples(arguments):
    """Every help page shows an example."""
    assert "steelyard demo" in run(*arguments).output


def commands(group, path=()):
    """Yield the words of every command, and the command."""
    for name, command in group.commands.items():
        yield (*path, name), command
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else ()


@pytest.mark.parametrize("path", [path for path, _ in commands(typer.main.get_command(app))])
def test_every_example_can_be_copied(path):
    """It is in one line on a terminal of 80 columns."""
    lines = run(*path, "--help").output.splitlines()
    title = next(n for n, line in enumerate(lines) if line.strip() in ("Example:", "Examples:"))
    examples = [line.strip() for line in lines[title + 1 :] if line.strip()]
    assert examples
    named = ["steelyard", *path]
    for example in examples:
        assert named == shlex.split(example)[: len(named)]


def test_compare_compares_every_scheme_in_a_table_that_fits():
    """The table has one line per scheme and at most 80 columns."""
    shown = run("compare", "--messages", "20000", "--workers", "50", "--skew", "1.4")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert "20,000 messages, Zipf 1.4, 50 workers" in lines[0]
    assert schemes.names() == [line.split()[1] for line in lines if line.startswith("│")]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--workers", "0"], "workers must be a whole number, from 1 to 2,147,483,647, got 0"),
        (["--workers", "2147483648"], "workers must be a whole number, from 1 to 2,147,483,647"),
        (["--messages", "0"], "messages must be a whole number, at least 1, got 0"),
        (["--skew", "-1"], "skew must be a number at least 0 and at most 10, got -1.0"),
    ],
)
def test_bad_arguments_are_refused_with_one_sentence(arguments, sentence):
    """The sentence names the bad value and the allowed ones; there is no traceback."""
    failed = run("compare", *arguments)
    assert failed.exit_code == 2
    assert sentence in " ".join(failed.output.replace("│", " ").split())
    assert "Traceback" not in failed.output


def test_simulate_writes_a_table_a_figure_and_numbers(tmp_path):
    plot, table = tmp_path / "cg.png", tmp_path / "cg.csv"
    result = CliRunner().invoke(
        app,
        ["simulate", "--fraction", "0.002", "--fast", "3", "--times", "5", "--period", "2",
         "--plot", str(plot), "--csv", str(table)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for text in ("44,000", "imbalance", "99th percentile", "{3,5}", "partial results"):
        assert text in result.output
    assert plot.read_bytes()[:4] == b"\x89PNG"
    assert "queue_length_max_min" in table.read_text("utf-8")


def test_options_of_simulate_override_its_file(tmp_path):
    """A TOML file gives settings, and options on the command line replace them."""
    settings = tmp_path / "run.toml"
    settings.write_text(
        'dataset = "zf"\nskew = 1.4\nfraction = 0.002\nscheme = "kg"\nworkers = 7\n'
        'then = ["2,3@5000"]\nload = 0.5\n',
        "utf-8",
    )
    result = CliRunner().invoke(app, ["simulate", str(settings), "--workers", "6", "--overload"])
    assert result.exit_code == 0, result.output
    assert "kg on 6 workers (equal {2,3}), zf" in result.output


@pytest.mark.parametrize("scheme", ["plans", "porc-graded", "sg"])
@pytest.mark.parametrize("service", ["deterministic", "exponential"])
def test_simulate_accepts_schemes_and_service_times(scheme, service):
    result = CliRunner().invoke(
        app,
        ["simulate", "--fraction", "0.001", "--scheme", scheme, "--service", service,
         "--epsilon", "0.1"] if scheme != "sg" else
        ["simulate", "--fraction", "0.001", "--scheme", scheme, "--service", service],
    )  # fmt: skip
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", ["visits.parquet", "visits.csv", "visits"])
def test_files_tell_their_format_by_their_names(name, tmp_path):
    """`simulate` and `compare` read the same messages; in a folder all names must agree."""
    rows = pa.table({"page": ["hot"] * 600 + [f"page {i}" for i in range(400)]})
    path = tmp_path / name
    if name.endswith("csv"):
        csv.write_csv(rows, path)
    else:
        file = path if name.endswith("parquet") else path / "0.parquet"
        file.parent.mkdir(exist_ok=True)
        pq.write_table(rows, file)
    simulated = run("simulate", "--input", str(path), "--key", "page", "--workers", "4")
    assert simulated.exit_code == 0, simulated.output
    assert re.search(r"messages\s+│\s+1,000 ", simulated.output)
    compared = run("compare", "--input", str(path), "--key", "page", "--workers", "4")
    assert compared.exit_code == 0, compared.output
    assert "1,000 messages, visits, 4 workers" in compared.output
    assert re.search(r"kg\s+│\s+1[.]\d+ │\s+1.00 │", compared.output), "60 % on one of 4 workers"


def test_malformed_lines_can_be_skipped_where_files_are_read(tmp_path):
    """The error of both commands names this remedy."""
    path = tmp_path / "visits.csv"
    path.write_text("page,visit\n" + "home,1\n" * 20 + "home\n" + "news,2\n" * 20)
    for command in ("simulate", "compare"):
        given = [command, "--input", str(path), "--key", "page", "--workers", "2"]
        refused = run(*given)
        assert refused.exit_code == 2
        assert 'on_malformed="skip"' in refused.output
        skipped = run(*given, "--on-malformed", "skip")
        assert skipped.exit_code == 0, skipped.output
        assert re.search(r"\b40\b", skipped.output)


def test_simulate_accepts_speeds_and_a_quiet_start():
    """Without signals nothing moves."""
    result = CliRunner().invoke(
        app,
        ["simulate", "--fraction", "0.002", "--speeds", "5,1,1,1", "--quiet", "99999"],
    )
    assert result.exit_code == 0, result.output
    assert "cg on 4 workers (5:1:1:1), wp" in result.output
    assert re.search(r"virtual workers moved\s+│\s+0 ", result.output)


def test_simulate_numbers_the_keys_of_tweets():
    """The data set has up to 4 billion words; the words that occur fit into memory."""
    result = CliRunner().invoke(app, ["simulate", "--dataset", "tw", "--fraction", "0.0001"])
    assert result.exit_code == 0, result.output
    assert "120,000" in result.output


def test_simulate_reads_files_and_counts_malformed_lines(tmp_path):
    path = tmp_path / "tweets.tsv"
    lines = [f"{1000 + i // 2}\tto be or not to be number{i}" for i in range(2000)]
    path.write_text("\n".join([*lines, "later\tthis line has no time"]), "utf-8")
    command = ["simulate", "--input", str(path), "--format", "words", "--workers", "3"]
    result = CliRunner().invoke(app, [*command, "--on-malformed", "skip"])
    assert result.exit_code == 0, result.output
    assert "14,000" in result.output
    assert "1 malformed line" in result.output
    stopped = CliRunner().invoke(app, command)
    assert stopped.exit_code == 2
    assert "line 2001" in " ".join(stopped.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "--workers", "0"], "workers must be a whole number, at least 1"),
        (["simulate", "--load", "1.5"], "load must be at most 1"),
        (["simulate", "--speeds", "1,0,1"], "a worker's speed must be a number above 0, got 0.0"),
        (["simulate", "--speeds", "1;2"], "speeds must be numbers separated by commas"),
        (["simulate", "--quiet", "-1"], "quiet must be a whole number, at least 0"),
        (["simulate", "--load", "0"], "load must be a number above 0"),
        (["simulate", "--times", "0", "--fast", "1"], "times must be a number above 0"),
        (["simulate", "--fast", "11"], "fast must be a whole number, from 0 to 10"),
        (["simulate", "--scheme", "best"], "scheme must be one of cg, plans, kg"),
        (
            ["simulate", "--dataset", "wiki"],
            "dataset must be one of zf, wp, wp-steep, tw; got 'wiki'",
        ),
        (["simulate", "--rules", "none"], "rules must be one of steady, paper"),
        (["simulate", "--service", "slow"], "service must be one of"),
        (["simulate", "--then", "soon"], "then must be written as fast,times@message"),
        (["simulate", "--then", "2,2@99999999"], "the message of a change must be a whole"),
        (["simulate", "--epsilon", "0"], "epsilon must be a number above 0"),
        (["simulate", "--scheme", "kg", "--epsilon", "0.1"], "kg has no setting 'epsilon'"),
        (["simulate", "--plot", "figure.txt"], "plot must end in .png, .svg or .pdf"),
        (["simulate", "--plot", "nowhere/figure.png"], "plot: the folder of 'nowhere/fig"),
        (["simulate", "--csv", "nowhere/all.csv"], "csv: the folder of 'nowhere/all.csv' does"),
        (["simulate", "--input", "x.csv"], "the format csv needs key=, the name of the key"),
        (["simulate", "--input", "x.txt"], "the name 'x.txt' does not say its format"),
        (["simulate", "--key", "page"], "key has no effect without input"),
        (["simulate", "--time", "at"], "time has no effect without input"),
        (["simulate", "--format", "csv"], "format has no effect without input"),
        (["compare", "--key", "page"], "key has no effect without input"),
        (["compare", "--input", "x.csv", "--skew", "1"], "skew has no effect on the messages of"),
        (["compare", "--input", "x.csv", "--key", "page"], "there is no file or folder 'x.csv'"),
        (["simulate", "--dataset", "tw", "--fraction", "0.5"], "too many keys to simulate"),
        (
            ["reproduce", "drift", "--data", "nowhere"],
            "data must be an existing folder, got 'nowhere'",
        ),
        (["reproduce", "epsilon", "--out", "README.md"], "out must be a folder, but 'README.md'"),
        (["generate", "wp", "--out", "x", "--partitions", "0"], "partitions must be a whole"),
        (["simulate", "nowhere.toml"], "'nowhere.toml' cannot be read"),
        (["simulate", "--skew", "1.0"], "skew and keys are settings of the data set 'zf'"),
        (["reproduce", "fig7"], "experiment must be one of all, data-rate, "),
        (["reproduce", "epsilon", "--scale", "3"], "scale must be a number at least 0.001"),
        (
            ["generate", "wiki", "--out", "nowhere"],
            "dataset must be one of zf, wp, wp-steep, tw; got",
        ),
        (["generate", "wp", "--out", "src"], "exists already"),
    ],
)
def test_bad_settings_are_refused_before_any_work(arguments, sentence, monkeypatch):
    """The command ends with a sentence and exit code 2."""
    monkeypatch.setenv("COLUMNS", "300")
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, result.output
    assert sentence in result.output


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("worker = 3", "there is no setting 'worker'; the settings are: dataset"),
        ("virtual-workers = -1", "virtual_workers must be a whole number, at least 0, got -1"),
        ("fast = 1\nvirtual-workers = 1\nvirtual_workers = 2", "has an option twice"),
        ("workers = 'three'", "workers must be a whole number, got 'three'"),
        ("workers = true", "workers must be a whole number, got True"),
        ("load = 'high'", "load must be a number, got 'high'"),
        ("overload = 1", "overload must be true or false, got 1"),
        ("scheme = 3", "scheme must be text, got 3"),
        ("then = 3", "then must be a list, got 3"),
        ("speeds = [1, 0]", "a worker's speed must be a number above 0, got 0"),
        ("speeds = ['fast']", "a worker's speed must be a number above 0, got 'fast'"),
        ("workers = ", "is not TOML"),
        ("on_malformed = 'ignore'\ninput = 'x'\nformat = 'words'", "ignore"),
    ],
)
def test_bad_settings_files_are_refused(text, sentence, tmp_path, monkeypatch):
    """The sentence names the setting or the file."""
    monkeypatch.setenv("COLUMNS", "300")
    path = tmp_path / "run.toml"
    path.write_text(text, "utf-8")
    result = CliRunner().invoke(app, ["simulate", str(path)])
    assert result.exit_code == 2, result.output
    assert sentence in result.output


DOCTOR = ["doctor", "nowhere.parquet", "--key", "k"]


@pytest.mark.parametrize(
    ("missing", "extra", "command"),
    [
        ("matplotlib", "simulate", [*DOCTOR, "--html", "x.html"]),
        ("jinja2", "simulate", [*DOCTOR, "--html", "x.html"]),
        ("pyspark", "doctor", DOCTOR),
        ("numba", "doctor", DOCTOR),
        ("numba", "doctor", ["generate", "zf", "--out", "nowhere"]),
        ("numba", "schemes", ["compare"]),
        ("numba", "schemes", ["dashboard"]),
        ("matplotlib", "spark,simulate", ["demo"]),
        ("pyspark", "spark,simulate", ["demo"]),
        ("pandas", "simulate", ["simulate"]),
        ("matplotlib", "simulate", ["simulate", "--plot", "x.png"]),
        ("pandas", "reproduce", ["reproduce", "--list"]),
        ("matplotlib", "reproduce", ["reproduce", "epsilon"]),
        ("pyspark", "reproduce", ["reproduce", "epsilon"]),
        ("confluent_kafka", "deploy", ["deploy", "--out", "nowhere"]),
        ("matplotlib", "deploy", ["deploy", "--out", "nowhere"]),
    ],
)
def test_a_missing_package_is_reported_before_any_work(missing, extra, command, monkeypatch):
    """The sentence has the command that installs the package."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setitem(sys.modules, missing, None)
    failed = CliRunner().invoke(app, command)
    assert failed.exit_code == 2, failed.output
    assert f"needs {missing}: install it with 'pip install \".[{extra}]\"'" in failed.output


def test_reproduce_lists_its_experiments():
    """Listing them does not start Spark."""
    result = CliRunner().invoke(app, ["reproduce", "--list"])
    assert result.exit_code == 0
    assert "later-schemes" in result.output


def test_reproduce_and_generate_write_their_files(spark, tmp_path):
    """`reproduce` writes a figure and a report, `generate` a data set as Parquet."""
    out = tmp_path / "figures"
    result = CliRunner().invoke(
        app, ["reproduce", "epsilon", "--scale", "0.002", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert {"epsilon.csv", "epsilon.parquet", "epsilon.png", "epsilon.svg", "report.html"} <= {
        path.name for path in out.iterdir()
    }
    made = CliRunner().invoke(
        app, ["generate", "zf", "--fraction", "1e-4", "--out", str(tmp_path / "zf")]
    )
    assert made.exit_code == 0, made.output
    assert spark.read.parquet(str(tmp_path / "zf")).count() == 1000
