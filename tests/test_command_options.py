"""The options of every command: choices, examples, and early checks."""

import re
import shlex
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.cli.option_values import CommandWithChoices, UnknownChoiceError

TOP = typer.main.get_command(app)
WIDE = {"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"}


def run(*arguments):
    """Run a command on a terminal that is wide enough for every sentence."""
    return CliRunner().invoke(app, arguments, env=WIDE)


def commands(group=TOP, path=()):
    """Yield the words of every command, and the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())
CHOICES = [
    pytest.param(command, parameter, id=f"{' '.join(path)} {parameter}")
    for path, command in COMMANDS.items()
    for parameter in getattr(command, "choices", ())
]


def option_of(command, name):
    """Return the option names of a parameter; an argument has none."""
    parameter = next(it for it in command.params if it.name == name)
    return [it for it in parameter.opts if it.startswith("--")]


def listed_in_help(command, parameter):
    """Return the choices that the help of a command lists for a parameter."""
    text = re.sub(r"[\s│]+", " ", run(command.name, "--help").output)
    template = command._templates[parameter]
    before, _, after = template.partition("{choices}")
    found = re.search(rf"{re.escape(before)}([^ .][^;]*?){re.escape(after)}( |$)", text)
    assert found, text
    return found[1].split(", ")


def test_every_command_lists_choices():
    """Every command is registered with the class that lists and checks choices."""
    top_level = [command for path, command in COMMANDS.items() if len(path) == 1]
    assert all(isinstance(command, CommandWithChoices) for command in top_level)
    assert len(CHOICES) == 19


@pytest.mark.parametrize(("command", "parameter"), CHOICES)
def test_choices_in_the_help_are_accepted(command, parameter):
    """Each listed value passes the check, and the shell completes it."""
    choices = command.choices[parameter]
    listed = listed_in_help(command, parameter)
    assert listed
    assert list(choices.names()) == listed
    for value in listed:
        choices.require(value)
    assert [value.removesuffix("COLUMN") for value in listed] == choices.complete("")


@pytest.mark.parametrize(("command", "parameter"), CHOICES)
def test_unknown_choices_are_refused(command, parameter):
    """The sentence lists the allowed values, and the exit code is 2."""
    failed = run(command.name, *option_of(command, parameter), "nonsense")
    assert failed.exit_code == 2, failed.output
    text = " ".join(failed.output.replace("│", " ").split())
    assert "must be" in text
    assert "nonsense" in text
    for value in command.choices[parameter].names():
        assert value in text
    assert "Traceback" not in text


def test_several_choices_are_separated_by_commas():
    """Each value is checked, and a shell completes the last one."""
    schemes = COMMANDS["deploy",].choices["schemes"]
    schemes.require("kg, sg")
    with pytest.raises(UnknownChoiceError, match="got 'best'"):
        schemes.require("kg,best")
    assert "kg,sg" in schemes.complete("kg,s")


def test_help_works_without_the_packages_of_a_command(monkeypatch):
    """Choices that a missing package defines are left out."""
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    for name in ("steelyard.spark.doctor_input", "steelyard.spark.streaming.stream_input"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert run("doctor", "--help").exit_code == 0
    assert run("stream", "--help").exit_code == 0


def test_importing_the_command_line_is_light():
    """It loads neither Spark, nor the compiler, nor a plotting library."""
    heavy = "pyspark numba numpy pyarrow matplotlib bokeh datasketches pandas"
    code = f"import sys, steelyard.cli; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_options_are_in_named_panels(path, monkeypatch):
    """Only --help has no panel, and all panels fit 80 columns."""
    unnamed = [
        it.name
        for it in COMMANDS[path].params
        if it.opts[0].startswith("--") and it.rich_help_panel is None
    ]
    assert unnamed == []
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    shown = run(*path, "--help")
    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_examples_parse(path):
    """Every example in --help has options and values that its command accepts."""
    command = COMMANDS[path]
    examples = [
        re.sub(r"\[/?bold\]", "", line).replace(r"\[", "[")
        for line in (command.epilog or "").splitlines()
        if "[bold]" in line
    ]
    assert examples
    for example in examples:
        words = shlex.split(example)
        assert words[: len(path) + 1] == ["steelyard", *path]
        with command.make_context(path[-1], words[len(path) + 1 :]):
            pass


STREAM = ["stream", "--key", "value"]
REAL_TIME = [
    *STREAM,
    "--placement",
    "real-time",
    "--source",
    "kafka",
    "--servers",
    "h:1",
    "--topic",
    "t",
]
DOCTOR = ["doctor", "README.md", "--key", "k"]
GENERATE = ["generate", "zf", "--out", "nowhere"]
KAFKA = [*STREAM, "--source", "kafka", "--servers", "x:1", "--topic", "t"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([*STREAM, "--workers", "0"], "workers must be a whole number, at least 1, got 0"),
        ([*STREAM, "--workers", "-3"], "workers must be a whole number, at least 1, got -3"),
        ([*STREAM, "--rate", "0"], "rate must be a whole number, at least 1, got 0"),
        (
            [*STREAM, "--files-per-batch", "0"],
            "files-per-batch must be a whole number, at least 1, got 0",
        ),
        ([*STREAM, "--metrics-port", "70000"], "metrics-port must be a whole number, from 0 to"),
        ([*STREAM, "--ui-port", "70000"], "ui-port must be a whole number, from 0 to 65,535"),
        ([*STREAM, "--ui-port", "8000"], "ui-port needs --ui"),
        (
            [*STREAM, "--placement", "x"],
            "placement must be one of pull, delegated, real-time; got 'x'",
        ),
        (
            [*STREAM, "--placement", "delegated", "--virtual-workers", "0"],
            "virtual_workers must be a whole number, at least 1, got 0",
        ),
        ([*STREAM, "--tasks-per-worker", "0"], "tasks_per_worker must be a whole number"),
        (
            [*STREAM, "--virtual-workers", "9"],
            "virtual-workers works only with --placement delegated",
        ),
        (
            [*STREAM, "--placement", "delegated", "--tasks-per-worker", "2"],
            "tasks-per-worker works only with --placement pull; pass --virtual-workers",
        ),
        ([*STREAM, "--slot", "0"], "slot must be a whole number, at least 1, got 0"),
        ([*STREAM, "--slot", "soon"], "slot must be a length of time such as"),
        (
            [*STREAM, "--placement", "delegated", "--period", "0"],
            "period must be a whole number, at least 1, got 0",
        ),
        ([*STREAM, "--period", "2"], "period works only with --placement delegated"),
        (
            [*STREAM, "--placement", "delegated", "--period", "1 hour"],
            "a period of event time needs --time and --window",
        ),
        (
            [*STREAM, "--time", "t", "--window", "0 seconds"],
            "window must be a length of time such as",
        ),
        (
            [*STREAM, "--time", "t", "--window", "1 hour", "--watermark", "later"],
            "watermark must be a length of time such as",
        ),
        ([*STREAM, "--window", "1 hour"], "window needs a column of event times"),
        ([*STREAM, "--slide", "1 hour"], "slide needs a window: pass --window"),
        ([*STREAM, "--watermark", "1 hour"], "watermark needs a window: pass --window"),
        ([*STREAM, "--time", "timestamp"], "time needs a window: pass --window"),
        (
            [*STREAM, "--time", "t", "--window", "1 hour", "--slide", "7 minutes"],
            "window must be a whole number of slides, got '1 hour' and '7 minutes'",
        ),
        ([*STREAM, "--agg", "sum"], "agg must be count or one of count:COLUMN, sum:COLUMN"),
        ([*STREAM, "--source", "parquet"], "source parquet needs --path"),
        ([*STREAM, "--source", "text", "--path", "nowhere"], "path: there is no file or folder"),
        (
            [*STREAM, "--source", "json", "--path", "EMPTY"],
            "has no files, so its columns are unknown",
        ),
        (
            [*STREAM, "--path", "docs"],
            "path works only with --source parquet or json or text, not with rate",
        ),
        (
            [*STREAM, "--files-per-batch", "2"],
            "files-per-batch works only with --source parquet or json",
        ),
        (
            [*STREAM, "--source", "json", "--path", "docs", "--rate", "5"],
            "rate works only with --source rate, not with json",
        ),
        (
            [*STREAM, "--conf", "spark.x"],
            "conf must be NAME=VALUE, NAME=env:VARIABLE or @FILE, got",
        ),
        ([*STREAM, "--conf", "=5"], "conf must be NAME=VALUE, NAME=env:VARIABLE or @FILE, got"),
        ([*STREAM, "--conf", "x=env:NO_SUCH"], "conf: x needs the environment variable 'NO_SUCH'"),
        ([*STREAM, "--conf", "@nowhere"], "conf: the file 'nowhere' cannot be read: No such file"),
        ([*STREAM, "--conf", "@README.md"], "conf: 'README.md', line 3 must be NAME=VALUE or"),
        ([*STREAM, "--conf", "spark.master=x"], "conf: spark.master has an option: pass --master"),
        ([*STREAM, "--conf", "spark.jars=x"], "conf: spark.jars has an option: pass --jars"),
        (
            [*STREAM, "--placement", "delegated", "--conf", "spark.sql.shuffle.partitions=9"],
            "conf: spark.sql.shuffle.partitions has an option: pass --workers",
        ),
        ([*STREAM, "--option", "startingOffsets"], "option must be NAME=VALUE"),
        ([*KAFKA, "--option", "subscribe=t"], "option: subscribe has an option: pass --topic"),
        ([*STREAM, "--out-option", "x=1"], "out-option needs --sink parquet or --sink kafka"),
        (
            [*STREAM, "--sink", "parquet", "--out", "x", "--out-option", "PATH=y"],
            "out-option: PATH has an option: pass --out",
        ),
        ([*DOCTOR, "--conf", "spark.jars=x"], "conf: spark.jars has an option: pass --jars"),
        ([*DOCTOR, "--option", "sep=;"], "option: sep has an option: pass --separator"),
        ([*DOCTOR, "--option", "password:x"], "option must be NAME=VALUE"),
        (["demo", "--conf", "spark.master=x"], "conf: spark.master has an option: pass --workers"),
        (["demo", "--html", "/proc/x.html"], "html: '/proc/x.html' cannot be written: No such"),
        ([*GENERATE, "--conf", "x"], "conf must be NAME=VALUE"),
        (["generate", "zf", "--out", "/proc/zf"], "out: '/proc/zf' cannot be written: No such"),
        (["reproduce", "--conf", "x"], "conf must be NAME=VALUE"),
        (["deploy", "--out", "nowhere", "--conf", "x"], "conf must be NAME=VALUE"),
        ([*STREAM, "--sink", "parquet", "--out", "/proc/x"], "out: '/proc/x' cannot be written"),
        ([*STREAM, "--checkpoint", "/proc/x/y"], "checkpoint: '/proc/x/y' cannot be written"),
        ([*STREAM, "--topic", "t"], "topic works only with --source kafka, not with rate"),
        ([*STREAM, "--servers", "x:1"], "servers needs --source kafka or --sink kafka"),
        ([*STREAM, "--source", "kafka", "--topic", "t"], "source kafka needs --servers and"),
        ([*STREAM, "--source", "kafka", "--servers", "x:1"], "source kafka needs --servers and"),
        ([*KAFKA, "--servers", "x"], "servers must be host:port, separated by commas"),
        ([*KAFKA, "--servers", "x:70000"], "servers must be host:port"),
        ([*STREAM, "--sink", "parquet"], "sink parquet needs --out"),
        ([*STREAM, "--sink", "kafka", "--out-topic", "t"], "sink kafka needs --out-servers"),
        ([*STREAM, "--out", "x"], "out works only with --sink parquet, not with console"),
        ([*STREAM, "--out-topic", "x"], "out-topic works only with --sink kafka, not with console"),
        ([*STREAM, "--sink", "parquet", "--out", "README.md"], "out must be a folder, but"),
        ([*STREAM, "--checkpoint", "README.md"], "checkpoint must be a folder, but 'README.md'"),
        ([*STREAM, "--control", "README.md"], "control must be a folder, but 'README.md' is a"),
        ([*STREAM, "--control", "ftp://x"], "control: 'ftp://x' must be a folder"),
        ([*STREAM, "--jars", "nowhere.jar"], "jars: the file 'nowhere.jar' does not exist"),
        ([*DOCTOR, "--workers", "0"], "workers must be a whole number"),
        ([*DOCTOR, "--capacities", "1,2"], "capacities must be one number for each of 24"),
        ([*DOCTOR, "--servers", "x:1"], "servers works only with --source kafka, not with parquet"),
        ([*DOCTOR, "--separator", ""], "separator must be at least one character"),
        ([*DOCTOR, "--jars", "nowhere.jar"], "jars: the file 'nowhere.jar' does not exist"),
        (
            [*DOCTOR, "--html", "nowhere/x.html"],
            "html: the folder of 'nowhere/x.html' does not exist",
        ),
        ([*DOCTOR, "--html", "docs"], "html must be a file, but 'docs' is a folder"),
        (["doctor", "nowhere.csv", "--key", "k"], "data: there is no file or folder"),
        (["doctor", "--topic", "t"], "source kafka needs --servers and --topic"),
        (["doctor", "--topic", "t", "--servers", "x"], "servers must be host:port"),
        (["demo", "--workers", "1"], "workers must be a whole number, from 2 to 64, got 1"),
        (["demo", "--slow", "9"], "slow must be a whole number, from 0 to 8, got 9"),
        (["demo", "--speed", "0"], "speed must be a number above 0 and at most 1, got 0.0"),
        (["demo", "--skew", "11"], "skew must be a number at least 0 and at most 10, got 11.0"),
        (["demo", "--batches", "1"], "batches must be a whole number, at least 2, got 1"),
        (["demo", "--messages", "0"], "messages must be a whole number, at least 1, got 0"),
        (
            ["demo", "--html", "nowhere/x.html"],
            "html: the folder of 'nowhere/x.html' does not exist",
        ),
        (["demo", "--ui-port", "-1"], "ui-port must be a whole number, from 0 to 65,535"),
        ([*GENERATE, "--fraction", "0"], "fraction must be a number above 0, got 0.0"),
        ([*GENERATE, "--skew", "11"], "skew must be a number at least 0 and at most 10"),
        ([*GENERATE, "--drift", "0"], "drift must be a whole number, at least 1, got 0"),
        ([*GENERATE, "--seed", "-1"], "seed must be a whole number, at least 0, got -1"),
        ([*GENERATE, "--partitions", "0"], "partitions must be a whole number, at least 1"),
        (["generate", "zf", "--out", "docs"], "out: 'docs' exists already"),
        (["reproduce", "--scale", "3"], "scale must be a number at least 0.001"),
        (["reproduce", "--data", "nowhere"], "data must be an existing folder, got"),
        (["reproduce", "--out", "README.md"], "out must be a folder, but 'README.md' is a file"),
        (["deploy", "--out", "README.md"], "out must be a folder, but 'README.md' is a file"),
        (["deploy", "--out", "nowhere", "--servers", "x"], "servers must be host:port"),
        (["deploy", "--out", "nowhere", "--workers", "1"], "workers must be a whole number"),
        (["deploy", "--out", "nowhere", "--delays", "0"], "delays must be a number above 0"),
        (
            ["deploy", "--out", "nowhere", "--data", "docs"],
            "data: 'docs' has no file sotu_words.parquet",
        ),
        (["simulate", "--ui-port", "8000"], "ui-port needs --ui"),
        (["dashboard", "--port", "70000"], "port must be a whole number, from 0 to 65,535"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_bad_options_are_refused_before_spark_starts(monkeypatch, tmp_path, arguments, sentence):
    """The sentence names the option, the bad value and the allowed ones."""

    def start(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("steelyard.spark.session.session", start)
    given = [str(tmp_path) if it == "EMPTY" else it for it in arguments]
    result = run(*given)
    assert result.exit_code == 2, (result.output, result.exception)
    assert sentence in " ".join(result.output.replace("│", " ").split())
