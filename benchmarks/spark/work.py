"""Measure the throughput of 8 task slots with 50 microseconds of work per row, Zipf 1.4.

The work sleeps, so that two cores can emulate 8 task slots.
"""

import inspect
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

import steelyard as sy
from benchmarks.spark.bench import Bar, Bench, Measured, drain, local
from benchmarks.timing import table
from steelyard.spark.shipping import shipped

_SLOTS, _PER_ROW, _TASKS = 8, 50e-6, (1, 2, 4, 8)

Sleeper = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def work(bench: Bench) -> Measured:
    rows = bench.rows * 2 // 5
    shown = table(
        f"{rows / 1e6:g} M rows of 50 µs, Zipf 1.4: task slots kept busy (seconds)",
        *("slots", "most", "by key, mapInArrow", *(f"map_arrow, {t} tasks each" for t in _TASKS)),
    )
    bars = []
    with local(_SLOTS) as spark:
        frame = bench.frame(spark, 1.4, rows)
        for tasks in (0, 1):  # start the Python workers of both
            drain(_slept(frame, tasks, _sleeper(None, 0.0)))
        for slots, slow in (("8 equal", 0), ("2 of 8 half as fast", 2)):
            limit = _SLOTS - slow / 2
            done: dict[int, tuple[float, float]] = {}
            for turn in range(2):
                for tasks in (0, *_TASKS) if turn == 0 else _TASKS:  # by key is slow: run it once
                    marks = tempfile.mkdtemp(dir=bench.folder) if slow else None
                    begin = time.perf_counter()
                    drain(_slept(frame, tasks, _sleeper(marks, _PER_ROW)))
                    taken = time.perf_counter() - begin
                    at_once = rows * _PER_ROW / taken
                    done[tasks] = max(done.get(tasks, (0.0, 0.0)), (at_once, taken))
            cells = [f"{at_once:.2f} ({taken:.0f})" for at_once, taken in done.values()]
            shown.add_row(slots, f"{limit:g}", *cells)
            if not slow:
                share = done[_default_tasks()][0] / limit
                bars.append(Bar("map_arrow with defaults, share of 8 slots busy", share, least=0.9))
    return shown, bars


def _default_tasks() -> int:
    default = inspect.signature(sy.group_by).parameters["tasks_per_worker"].default
    assert isinstance(default, int)
    return default


def _slept(frame: DataFrame, tasks: int, sleeper: Sleeper) -> DataFrame:
    """Sleep for every row: with 0 `tasks` by key grouping, else on workers of this many tasks."""
    if tasks == 0:
        return frame.repartition(_SLOTS, "key").mapInArrow(shipped(sleeper), "n long")

    def as_table(rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(list(sleeper(rows.to_batches())))

    grouped = sy.group_by(frame, "key", workers=_SLOTS, tasks_per_worker=tasks)
    return grouped.map_arrow(as_table, "n long")


def _sleeper(marks: str | None, per_row: float) -> Sleeper:
    """Return a function that sleeps for every row, in steps of 5 ms.

    With `marks`, the first two processes that use this folder sleep twice as long.
    """

    def slept(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        factor = 1.0
        if marks is not None:
            mine = f"{marks}/{os.getpid()}"
            if not os.path.exists(mine) and len(os.listdir(marks)) < 2:  # noqa: PTH110, PTH208
                open(mine, "x").close()  # noqa: PTH123
            factor = 2.0 if os.path.exists(mine) else 1.0  # noqa: PTH110
        rows, owed, last = 0, 0.0, time.perf_counter()
        for batch in batches:
            rows += batch.num_rows
            owed += batch.num_rows * per_row * factor
            while owed > 0.005:
                time.sleep(0.005)
                now = time.perf_counter()
                owed -= now - last
                last = now
            last = time.perf_counter()
        yield pa.RecordBatch.from_pydict({"n": [rows]})

    return slept
