"""Ctrl-C ends a command with one line, and leaves no process behind."""

import os
import pty
import signal
import subprocess
import sys
from threading import Thread

import pytest
from pyspark.errors import PySparkRuntimeError

from steelyard.spark.failures import plain_failures
from steelyard.spark.interrupts import (
    deferred_interrupts,
    quiet_interrupts,
    restored_interrupts,
)
from tests.waiting import PATIENCE, until


class Terminal:
    """A command in a terminal of its own, on which Ctrl-C can be pressed."""

    def __init__(self, *command):
        self.keyboard, screen = pty.openpty()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *command],
            **dict.fromkeys(("stdin", "stdout", "stderr"), screen),
            env=environment | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(screen)
        self.shown = ""
        Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                self.shown += os.read(self.keyboard, 4096).decode("utf-8", "replace")
            except OSError:  # the command has closed the terminal
                return

    def interrupt_at(self, text):
        """Send Ctrl-C's signal to all processes of the terminal once a text is shown."""
        until(lambda: text in self.shown, self._check_running)
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(PATIENCE)

    def has_processes(self):
        """Whether the command or a process that it has started still runs."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def _check_running(self):
        assert self.process.poll() is None, self.shown

    def close(self):
        """End all processes of the terminal."""
        if self.has_processes():
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        os.close(self.keyboard)


@pytest.fixture
def terminal(tmp_path):
    """Run the doctor on many rows in a terminal."""
    data = tmp_path / "visits.csv"
    data.write_text("page\n" + "".join(f"page {i % 1000}\n" for i in range(300_000)), "utf-8")
    terminal = Terminal("doctor", str(data), "--key", "page", "--master", "local[1]")
    yield terminal
    terminal.close()


@pytest.mark.parametrize("moment", ["Starting Spark", "Reading", "Counting"])
def test_an_interrupted_doctor_prints_one_line_and_stops_spark(terminal, moment):
    """The exit code is that of other interrupted programs, and there is no traceback."""
    assert terminal.interrupt_at(moment) == 130
    until(lambda: "Interrupted" in terminal.shown)
    assert "Interrupted. No process of Spark is left." in terminal.shown
    for word in ("Traceback", "ERROR", "Exception", "py4j"):
        assert word not in terminal.shown
    until(lambda: not terminal.has_processes())


def read_while_interrupted():
    """PySpark closes the connection to Java, and raises the error of this connection."""
    try:
        raise KeyboardInterrupt
    finally:
        raise PySparkRuntimeError("Broken pipe") from None


def test_an_interrupt_is_no_failure_of_spark():
    """The error of PySpark hides the interrupt, but was raised because of it."""
    with pytest.raises(KeyboardInterrupt), plain_failures("rows"):
        read_while_interrupted()


def interrupt():
    """Send the signal of Ctrl-C to this process, and let Python handle it."""
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(100):
        pass


def test_a_deferred_interrupt_is_raised_at_the_end():
    """The block is complete, and the handler is the one from before."""
    before, done = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():  # noqa: PT012
        interrupt()
        done.append("started")
    assert ["started"] == done
    assert signal.getsignal(signal.SIGINT) is before


def test_the_earlier_handler_replaces_that_of_spark():
    """Spark sets its own handler when it starts; it would call Java during another call."""

    def of_spark(number, frame):
        pass

    before = signal.getsignal(signal.SIGINT)
    with restored_interrupts():
        with deferred_interrupts():
            signal.signal(signal.SIGINT, of_spark)
        assert signal.getsignal(signal.SIGINT) is before


def test_only_the_first_interrupt_is_raised_while_spark_stops():
    """Later ones are ignored until the handler is restored."""
    before = signal.getsignal(signal.SIGINT)
    with restored_interrupts():
        with pytest.raises(KeyboardInterrupt), quiet_interrupts():
            interrupt()
        interrupt()
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_get_no_signals():
    """A command in a thread works without signals."""
    done = []

    def work():
        with restored_interrupts(), deferred_interrupts(), quiet_interrupts():
            done.append("worked")

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert ["worked"] == done
