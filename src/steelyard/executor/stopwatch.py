"""Measure a worker of a stream: rows, busy time and latencies, in a report.

A task of a worker enters; the same task with timing leaves, and a report for the driver. This runs
inside Spark's Python tasks and knows no Spark.
"""

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steelyard.aggregators import Groups
from steelyard.control.reports import LATENCY_BINS, WorkerReport, latency_bins
from steelyard.executor.stream_source import LETTERS, texts_of
from steelyard.executor.worker import Task
from steelyard.reported_keys import PLAIN, ReportedKeys

_FIRST_KEYS = 5
"""Number of keys that the error of a failed worker names."""


@dataclass(frozen=True)
class Stopwatch:
    """The settings for measuring workers, and the columns that only the measuring reads."""

    bucket: str
    arrived: str | None
    """The column of arrival times, in microseconds since 1970."""
    visible: tuple[str, ...]
    """The columns that the work reads."""
    keys: tuple[str, ...]
    """The columns of the key that workers get; a key that sources compute stays there."""
    workers: int
    tasks: int = 1
    """Tasks of each worker; task number t belongs to worker t modulo `workers`."""
    reported: ReportedKeys = PLAIN
    """How errors name keys."""

    def start(self, task: Task, worker: int, batch: int) -> "Timed":
        """Start measuring a task of a worker."""
        return Timed(self, task, worker, batch)


class Timed:
    """A task with counts of its rows, its busy time and the latencies of its rows."""

    def __init__(self, watch: Stopwatch, task: Task, worker: int, batch: int) -> None:
        self._watch, self._task, self._worker, self._batch = watch, task, worker, batch
        self._rows, self._busy, self._began = 0, 0.0, time.time()
        self._latencies = np.zeros(LATENCY_BINS, np.int64)

    def work(self, table: pa.Table) -> list[pa.RecordBatch]:
        """Process some rows, and measure how long it takes."""
        visible = table.select(list(self._watch.visible))
        begin = time.perf_counter()
        try:
            made = list(self._task.work(visible))
        except Exception as error:
            raise RuntimeError(
                f"{self._name} failed in micro-batch {self._batch} on "
                f"{_described(table, self._watch)}: {type(error).__name__}: {error}"
            ) from error
        self._busy += time.perf_counter() - begin
        self._rows += table.num_rows
        if self._watch.arrived is not None:
            arrived = table[self._watch.arrived].drop_null().to_numpy()
            self._latencies += latency_bins(time.time() - arrived / 1e6)
        return made

    def finish(self) -> list[pa.RecordBatch]:
        """Return the rest of the output, and measure how long it takes."""
        begin = time.perf_counter()
        try:
            made = list(self._task.finish())
        except Exception as error:
            raise RuntimeError(
                f"{self._name} failed in micro-batch {self._batch} when it finished its output: "
                f"{type(error).__name__}: {error}"
            ) from error
        self._busy += time.perf_counter() - begin
        return made

    @property
    def _name(self) -> str:
        task, worker = divmod(self._worker, self._watch.workers)
        return f"worker {worker}" + (f" (task {task})" if self._watch.tasks > 1 else "")

    def report(self) -> WorkerReport:
        """Return the measurements."""
        latencies = [(int(i), int(self._latencies[i])) for i in np.flatnonzero(self._latencies)]
        return WorkerReport(
            self._batch,
            self._worker,
            self._rows,
            self._busy,
            self._task.made.keys,
            tuple(latencies),
            self._task.made.bytes,
            self._began,
            time.time(),
        )


def _described(table: pa.Table, watch: Stopwatch) -> str:
    """Describe a table by its numbers of rows, buckets and keys, and by its first keys.

    The work is not repeated on parts of the table to find the failing row, because it may have
    side effects.
    """
    buckets = pc.count_distinct(table[watch.bucket]).as_py()
    size = f"{table.num_rows:,} rows of {buckets:,} buckets"
    if not watch.keys:
        return size
    (rows,) = table.select(list(watch.keys)).combine_chunks().to_batches()
    try:
        groups = Groups.of(rows.columns)
    except pa.ArrowException:  # keys of a nested type, which only map_arrow allows
        return size
    count = f"{size} and {groups.count:,} keys"
    if watch.reported.are_hidden:
        return count
    first = rows.take(pa.array(groups.first_rows()[:_FIRST_KEYS]))
    texts = (texts_of(column, watch.reported) for column in first.columns)
    keys = [", ".join(key)[:LETTERS] for key in zip(*texts, strict=True)]
    more = "; ..." if groups.count > _FIRST_KEYS else ""
    return f"{count} ({'; '.join(keys)}{more})"
