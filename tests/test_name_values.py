"""Settings as NAME=VALUE: their sources, their secrets, and ports that are in use."""

import socket

import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.cli.name_values import CONF, SINK_OPTIONS, SOURCE_OPTIONS

WIDE = {"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"}


def test_settings_come_from_the_command_line_files_and_the_environment(tmp_path, monkeypatch):
    """The last value of a name is valid; a value may contain equals signs."""
    file = tmp_path / "spark.properties"
    file.write_text("# a comment\n\nspark.a = 1\nspark.b=x=y\nspark.c=env:OF_C\n", "utf-8")
    monkeypatch.setenv("OF_C", "from the environment")
    given = ["spark.a=0", f"@{file}", "spark.b=z", "spark.d="]
    assert CONF.settings(given) == {
        "spark.a": "1",
        "spark.b": "z",
        "spark.c": "from the environment",
        "spark.d": "",
    }
    assert CONF.settings(None) == {}


def test_a_shell_completes_names():
    """A value is left to the user."""
    assert "spark.jars.packages=" in CONF.complete("spark.j")
    assert "kafka.security.protocol=" in SOURCE_OPTIONS.complete("kafka.sec")
    assert SINK_OPTIONS.complete("nothing") == []


@pytest.mark.parametrize("setting", ["password:swordfish", "my token swordfish", "=swordfish"])
def test_a_malformed_setting_is_not_repeated_if_it_may_be_a_secret(setting):
    """Only the beginning of the text is repeated."""
    with pytest.raises(ValueError, match="conf must be NAME=VALUE") as failed:
        CONF.settings([setting])
    assert "swordfish" not in str(failed.value)


def test_a_line_of_a_file_is_never_repeated(tmp_path):
    """The error names the file and the line."""
    (tmp_path / "x").write_text("a=1\nswordfish\n", "utf-8")
    with pytest.raises(ValueError, match="line 2 must be NAME=VALUE") as failed:
        CONF.settings([f"@{tmp_path / 'x'}"])
    assert "swordfish" not in str(failed.value)


@pytest.mark.parametrize(
    "setting",
    [
        "kafka.ssl.keystore.password=swordfish-1",
        'kafka.sasl.jaas.config=Login required username="me" password="swordfish-1";',
        "spark.hadoop.fs.s3a.secret.key=swordfish-1",
        "any.name=env:SWORDFISH",
    ],
)
def test_errors_show_no_secret(setting, monkeypatch, tmp_path):
    """A later error that repeats the value shows asterisks."""
    monkeypatch.setenv("SWORDFISH", "swordfish-1")
    given = ["stream", "--key", "value", "--option", setting, "--checkpoint"]
    (tmp_path / "swordfish-1").touch()
    done = CliRunner().invoke(app, [*given, str(tmp_path / "swordfish-1")], env=WIDE)
    assert done.exit_code == 2, done.output
    assert "/***' is a file" in done.output
    assert "swordfish-1" not in done.output


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["stream", "--key", "value", "--metrics-port"], "metrics-port"),
        (["stream", "--key", "value", "--ui", "--ui-port"], "ui-port"),
        (["demo", "--ui", "--ui-port"], "ui-port"),
        (["simulate", "--ui", "--ui-port"], "ui-port"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_port_in_use_is_refused_before_any_work(arguments, name, monkeypatch):
    """The sentence names the option and the port."""

    def start(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("steelyard.spark.session.session", start)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = CliRunner().invoke(app, [*arguments, str(port)], env=WIDE)
    assert done.exit_code == 2, (done.output, done.exception)
    assert f"{name}: port {port} cannot be used (Address already in use" in done.output
