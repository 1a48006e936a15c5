"""A machine that lacks something is told so in one sentence."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def run(script, path, **environment):
    return subprocess.run(
        [shutil.which("sh"), SCRIPTS / script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(path), **environment},
    )


def machine(folder, **programs):
    """A folder with only these programs, each a line of shell, and a few basic tools."""
    for tool in ("sed", "head", "env"):
        (folder / tool).symlink_to(shutil.which(tool))
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!{shutil.which('sh')}\n{line}\n")
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize("programs", [{}, {"python3": "exit 1"}], ids=["none", "too old"])
def test_no_python(tmp_path, programs):
    """Without Python 3.11 nothing starts."""
    told = run("find-python", machine(tmp_path, **programs))
    assert told.returncode == 1
    assert told.stdout == ""
    assert told.stderr.startswith("Steelyard needs Python 3.11 or newer")
    assert told.stderr.count("\n") == 1


def test_a_python_that_will_do(tmp_path):
    """The first that is new enough is taken; PYTHON names another."""
    folder = machine(tmp_path, **{"python3": "exit 1", "python3.12": "exit 0"})
    assert run("find-python", folder).stdout == f"{folder}/python3.12\n"
    other = tmp_path / "mine"
    other.symlink_to(folder / "python3.12")
    assert run("find-python", folder, PYTHON=str(other)).stdout == f"{other}\n"


@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ({}, "found none"),
        ({"java": "echo 'openjdk version \"11.0.2\" 2019' >&2"}, "found Java 11"),
        ({"java": "echo 'java version \"1.8.0_391\"' >&2"}, "found Java 1"),
    ],
)
def test_no_java(tmp_path, programs, found):
    """Without Java 17 Spark cannot run."""
    told = run("check-java", machine(tmp_path, **programs))
    assert told.returncode == 1
    assert "needs Java 17 or newer" in told.stderr
    assert found in told.stderr
    assert told.stderr.count("\n") == 1


def test_a_java_that_will_do(tmp_path):
    """Java 17 says nothing, JAVA_HOME is honored."""
    folder = machine(tmp_path, java="echo 'openjdk version \"17.0.1\"' >&2")
    assert run("check-java", folder).returncode == 0
    (tmp_path / "home/bin").mkdir(parents=True)
    (tmp_path / "home/bin/java").symlink_to(folder / "java")
    (tmp_path / "empty").mkdir()
    empty = machine(tmp_path / "empty")
    assert run("check-java", empty, JAVA_HOME=str(tmp_path / "home")).returncode == 0


def test_make_lists_every_target():
    """`make` alone explains itself."""
    shown = subprocess.run(
        ["make", "--no-print-directory"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        cwd=SCRIPTS.parent,
    )
    targets = [line.split()[0] for line in shown.stdout.splitlines()]
    for target in ("bench", "demo", "help", "lint", "setup", "test"):
        assert target in targets


def test_no_chromium(tmp_path):
    """The tests in a browser are not left out in silence: what to install is told."""
    told = run("ensure-chromium", machine(tmp_path, id="echo 1000"))
    assert told.returncode == 1
    assert told.stdout == ""
    assert "sudo apt-get install chromium" in told.stderr
    assert told.stderr.count("\n") == 1


def test_a_chromium_that_is_named(tmp_path):
    """It is taken, or missed."""
    there = machine(tmp_path, chromium="exit 0", mine="exit 0")
    assert run("ensure-chromium", there).stdout == f"{tmp_path}/chromium\n"
    assert run("ensure-chromium", there, CHROMIUM="mine").stdout == f"{tmp_path}/mine\n"
    assert run("ensure-chromium", there, CHROMIUM="theirs").returncode == 1


def test_chromium_is_installed_where_one_may(tmp_path):
    """By Debian's own tool, for who is root."""
    chromium = tmp_path / "chromium"
    made = f"printf '#!/bin/sh\\n' > {chromium} && {shutil.which('chmod')} +x {chromium}"
    told = run("ensure-chromium", machine(tmp_path, **{"id": "echo 0", "apt-get": made}))
    assert told.stdout == f"{tmp_path}/chromium\n"
    assert "Installing Debian's chromium" in told.stderr
