"""Each script names a missing program in one sentence."""

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
    """Create a folder with these programs, each a line of shell, and a few basic tools."""
    for tool in ("sed", "head", "env"):
        (folder / tool).symlink_to(shutil.which(tool))
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!{shutil.which('sh')}\n{line}\n")
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize("programs", [{}, {"python3": "exit 1"}], ids=["none", "too old"])
def test_a_missing_python_is_reported(tmp_path, programs):
    """Steelyard needs Python 3.11 or newer."""
    done = run("find-python", machine(tmp_path, **programs))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Steelyard needs Python 3.11 or newer")
    assert done.stderr.count("\n") == 1


def test_a_new_enough_python_is_found(tmp_path):
    """The script prints the first one that is new enough, or the one that PYTHON names."""
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
def test_a_missing_java_is_reported(tmp_path, programs, found):
    """Spark needs Java 17 or newer."""
    done = run("check-java", machine(tmp_path, **programs))
    assert done.returncode == 1
    assert "needs Java 17 or newer" in done.stderr
    assert found in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_new_enough_java_is_found(tmp_path):
    """The script searches PATH and JAVA_HOME."""
    folder = machine(tmp_path, java="echo 'openjdk version \"17.0.1\"' >&2")
    assert run("check-java", folder).returncode == 0
    (tmp_path / "home/bin").mkdir(parents=True)
    (tmp_path / "home/bin/java").symlink_to(folder / "java")
    (tmp_path / "empty").mkdir()
    empty = machine(tmp_path / "empty")
    assert run("check-java", empty, JAVA_HOME=str(tmp_path / "home")).returncode == 0


def test_make_lists_every_target():
    """`make` without a target lists all targets."""
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


def test_a_missing_chromium_is_reported(tmp_path):
    """The browser tests are not skipped silently: the message names the package to install."""
    done = run("ensure-chromium", machine(tmp_path, id="echo 1000"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "sudo apt-get install chromium" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_named_chromium_is_used(tmp_path):
    """It is an error if the program that CHROMIUM names does not exist."""
    folder = machine(tmp_path, chromium="exit 0", mine="exit 0")
    assert run("ensure-chromium", folder).stdout == f"{tmp_path}/chromium\n"
    assert run("ensure-chromium", folder, CHROMIUM="mine").stdout == f"{tmp_path}/mine\n"
    assert run("ensure-chromium", folder, CHROMIUM="theirs").returncode == 1


def test_root_installs_a_missing_chromium(tmp_path):
    """The script runs apt-get if the user is root."""
    chromium = tmp_path / "chromium"
    install = f"printf '#!/bin/sh\\n' > {chromium} && {shutil.which('chmod')} +x {chromium}"
    done = run("ensure-chromium", machine(tmp_path, **{"id": "echo 0", "apt-get": install}))
    assert done.stdout == f"{tmp_path}/chromium\n"
    assert "Installing Debian's chromium" in done.stderr
