"""Commands on a real terminal: what they print before they load Spark, and how Ctrl-C ends them."""

import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from tests.waiting import PATIENCE

STARTS_SPARK = [
    ["stream", "--key", "value", "--source", "rate"],
    ["doctor", "--topic", "t", "--servers", "127.0.0.1:1"],
    ["demo"],
    ["generate", "zf", "--out", "{folder}/zf"],
    ["reproduce", "epsilon", "--out", "{folder}/figures"],
]


class Terminal:
    """A command whose terminal is a pseudo-terminal."""

    def __init__(self, *arguments, options=()):
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, *options, "-m", "steelyard.cli", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        )
        os.close(theirs)
        self.output = ""

    def read_until(self, text):
        """Read until a text is printed, and return all output so far."""
        while text not in self.output and self._read():
            pass
        return self.output

    def read_all(self):
        """Read until the command ends, and return all output."""
        while self._read():
            pass
        return self.output

    def _read(self):
        try:
            read = os.read(self._ours, 65536)
        except OSError:  # the command has closed the terminal
            return False
        self.output += read.decode(errors="replace")
        return bool(read)

    def close(self):
        """Stop the command with all programs that it started."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self._ours)


@pytest.fixture
def open_terminal():
    """Return a function that runs a command on a terminal."""
    opened = []

    def run(*arguments, **more):
        opened.append(Terminal(*arguments, **more))
        return opened[-1]

    yield run
    for terminal in opened:
        terminal.close()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", STARTS_SPARK, ids=lambda words: words[0])
def test_a_command_says_that_it_starts_spark_before_it_loads_spark(
    arguments, open_terminal, tmp_path
):
    """Python reports each module on the same terminal when it is loaded."""
    given = [word.format(folder=tmp_path) for word in arguments]
    shown = open_terminal(*given, options=["-X", "importtime"]).read_until(" pyspark.sql\r\n")
    assert "Starting Spark ..." in shown
    large = re.search(r"\| +(pyspark|numba|pandas|pyarrow|numpy)\b", shown)
    assert shown.index("Starting Spark ...") < large.start()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Starting Spark ...", " pyspark.sql\r\n", "py4j.java_gateway"])
def test_ctrl_c_ends_the_start_of_spark_without_a_traceback(text, open_terminal):
    """The exit code is that of a program that Ctrl-C ends."""
    terminal = open_terminal("stream", "--key", "value", options=["-X", "importtime"])
    terminal.read_until(text)
    os.killpg(terminal.process.pid, signal.SIGINT)
    shown = terminal.read_all()
    assert terminal.process.wait(PATIENCE) in (0, 130, -signal.SIGINT)
    assert "Traceback" not in shown


def test_nothing_is_printed_where_there_is_no_terminal():
    """The status line is for people; files get only results and errors."""
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.cli", "stream", "--key", "value", "--sink", "kafka"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Starting Spark" not in done.stderr
