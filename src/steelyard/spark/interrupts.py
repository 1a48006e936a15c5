"""Handle Ctrl-C so that Spark stops, and Java's and Python's stack traces stay away.

A signal of the terminal enters; one `KeyboardInterrupt` leaves, at a moment when Spark can stop.
"""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block; the second Ctrl-C ends the block at once.

    If Spark is interrupted while it starts, a Java process stays behind that never ends. After the
    block Ctrl-C has its earlier handler, also if Spark has set its own.
    """
    if current_thread() is not main_thread():  # other threads get no signals
        yield
        return
    pending: list[int] = []

    def defer(number: int, frame: Any) -> None:
        pending.append(number)
        if len(pending) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, defer)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pending:
        raise KeyboardInterrupt


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C, and log nothing; later ones do not disturb the cleaning.

    Spark's own handler calls Java while another call waits for its answer, which Py4J logs with a
    stack trace. Leaving the block does not restore the handler, because Spark still has to stop.
    """
    if current_thread() is not main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def restored_interrupts() -> Iterator[None]:
    """Restore the handler of Ctrl-C and the logging at the end of the block."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        logging.disable(logging.NOTSET)
