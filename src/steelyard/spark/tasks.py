"""Run a function on many items as Spark tasks, and yield results as tasks finish.

Items enter, each as a row; results leave, in the order in which tasks finish.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from steelyard.spark.versions.interfaces import add_tag, interrupt_tag

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_tasks(
    spark: SparkSession,
    batches: Sequence[Sequence[Item]],
    work: Callable[[Item], Result],
    at_once: int,
) -> Iterator[list[tuple[Item, Result]]]:
    """Run `work` on every item; each batch is one task, and `at_once` tasks run at a time.

    The first error cancels all other tasks; so does closing the iterator. Items, results and `work`
    are pickled, so executors need this package.

    Args:
        spark: The session.
        batches: The items of each task.
        work: The function to run on an item.
        at_once: The number of tasks that run at the same time.

    Yields:
        The items of a finished task, each with its result.

    >>> done = run_tasks(spark, [[1, 2], [3]], abs, at_once=2)
    >>> sorted(pair for batch in done for pair in batch)
    [(1, 1), (2, 2), (3, 3)]
    """
    waiting = list(batches)
    running: dict[Future[list[Result]], Sequence[Item]] = {}
    tag = f"steelyard-{uuid4()}"
    pool = ThreadPoolExecutor(max_workers=at_once)
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                batch = waiting.pop(0)
                running[pool.submit(_run_one_task, spark, tag, batch, work)] = batch
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            # Finished results are yielded before an error is raised.
            for future in sorted(done, key=lambda future: future.exception() is not None):
                batch = running.pop(future)
                yield list(zip(batch, future.result(), strict=True))
    finally:
        if running:
            interrupt_tag(spark, tag)
        pool.shutdown(wait=False, cancel_futures=True)


def _run_one_task(
    spark: SparkSession, tag: str, batch: Sequence[Item], work: Callable[[Item], Result]
) -> list[Result]:
    add_tag(spark, tag)
    rows = [(number, pickle.dumps(item)) for number, item in enumerate(batch)]
    function = pickle.dumps(work)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        do = pickle.loads(function)  # noqa: S301 - pickled a few lines above
        for some in batches:
            for number, item in zip(*some.to_pydict().values(), strict=True):
                result = pickle.dumps(do(pickle.loads(item)))  # noqa: S301
                yield pa.RecordBatch.from_pydict({"number": [number], "result": [result]})

    items = spark.createDataFrame(rows, "number long, item binary").coalesce(1)
    found = items.mapInArrow(run, "number long, result binary").collect()
    by_number = {row["number"]: pickle.loads(bytes(row["result"])) for row in found}  # noqa: S301
    return [by_number[number] for number in range(len(batch))]
