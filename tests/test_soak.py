"""The soak fails if and only if the resources of a process grow."""

import os
import socket
import threading
from pathlib import Path

import pytest

from benchmarks.soak.processes import Process, Usage, below
from benchmarks.soak.watching import Watch

EXECUTOR = "java\0org.apache.spark.executor.CoarseGrainedExecutorBackend"


def grown(usage_after, batches=200, step=2):
    """Return the measures that grow too much in a stream with one executor."""
    watch = Watch()
    for done in range(0, batches + 1, step):
        watch.measure(done, [Process(7, 1, EXECUTOR, usage_after(done))])
    ((kind, measures),) = watch.growth().items()
    assert kind == "executor"
    return [it.measure for it in measures if not it.is_allowed]


@pytest.mark.parametrize("batches", [80, 1000])
def test_a_leak_of_one_in_each_micro_batch_is_found(batches):
    """Leaks of all four resources are found, in the shortest run and in a long one."""
    assert grown(lambda done: Usage(800, 12 + done, 350, 280), batches) == ["sockets"]
    assert grown(lambda done: Usage(800, 12, 350 + done, 280), batches) == ["files"]
    assert grown(lambda done: Usage(800, 12, 350, 280 + done), batches) == ["threads"]
    assert grown(lambda done: Usage(100 + 20 * done), batches) == ["megabytes"]


def test_a_warm_up_a_peak_and_a_pause_are_not_leaks():
    """Threads start, descriptors are open for a moment, and a pool shrinks without work."""

    def usage(done):
        warm, peak, pause = min(1, done / 50), done in (100, 170, 190), 60 < done < 120
        return Usage(
            megabytes=300 + 500 * warm,
            sockets=9 + 5 * warm + 90 * peak,
            files=350 + 99 * peak,
            threads=90 + 190 * warm * (not pause),
        )

    assert grown(usage) == []


def test_sockets_files_and_threads_of_a_process_are_counted():
    """Sockets do not count as files."""
    before = below(os.getpid())[0].usage
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    with socket.socket(), socket.socket(), Path(os.devnull).open():
        thread.start()
        now = below(os.getpid())[0].usage
        done.set()
    thread.join()
    assert now.sockets - before.sockets == 2
    assert now.files - before.files == 1
    assert now.threads - before.threads == 1
    assert now.megabytes > 1
