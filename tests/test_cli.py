import pytest
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
    """Every help page says how it is used."""
    assert "steelyard demo" in run(*arguments).output


def test_demo_compares_every_scheme_in_a_table_that_fits():
    """One line per scheme, no wider than a terminal."""
    shown = run("demo", "--messages", "20000", "--workers", "50", "--skew", "1.4")
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
def test_bad_arguments_get_one_sentence(arguments, sentence):
    """What was given, what is allowed, exit code 2, and no traceback."""
    failed = run("demo", *arguments)
    assert failed.exit_code == 2
    assert sentence in " ".join(failed.output.replace("│", " ").split())
    assert "Traceback" not in failed.output
