"""Compare the time of a micro-batch with little work to that of Spark's own grouping by key.

Small micro-batches show the cost of each micro-batch, large ones the cost of each row. A single
source groups all rows on one core; several sources share that work. Delegated workers are also
compared with a stateful operator of Spark, in small micro-batches only, because its rows go
through pandas one by one.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import truediv
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import steelyard as sy
from benchmarks.spark.bench import Bar, Measured
from benchmarks.streaming.running import WORKERS, Bench, local
from benchmarks.timing import table
from steelyard.spark.shipping import shipped

_KEYS, _BATCHES = 100_000, 10
_FIRST = "repartition(n, key), counted in Python, merged"


@dataclass(frozen=True)
class Size:
    """The size of a micro-batch, and the number of measurements."""

    files: int
    """Files in a micro-batch; each file is a source."""
    rows: int
    """Rows in a file."""
    repeats: int

    @property
    def millions(self) -> str:
        """Millions of rows in a micro-batch, as text."""
        return f"{self.files * self.rows / 1e6:g}"


_SIZES = (Size(1, 1_000_000, 6), Size(8, 125_000, 6), Size(8, 1_000_000, 3))


def overhead(bench: Bench) -> Measured:
    def pull(stream: DataFrame) -> DataFrame:
        control = bench.fresh() / "control"
        grouped = sy.group_stream(stream, "page", workers=WORKERS, control=control)
        return grouped.aggregate(sy.Count())

    def delegated(stream: DataFrame) -> DataFrame:
        grouped = sy.group_stream(
            stream,
            "page",
            workers=WORKERS,
            placement=sy.Delegated(),
            control=bench.fresh() / "control",
        )
        return grouped.aggregate(sy.Count())

    groupings: dict[str, Callable[[DataFrame], DataFrame]] = {
        _FIRST: by_key,
        "pull": pull,
        "delegated": delegated,
    }
    shown = table(
        f"A micro-batch, {_KEYS:,} equally frequent keys",
        *("M rows", "sources", "grouped by", "seconds", "relative to the first"),
    )
    bars = []
    with local() as spark:
        for size in _SIZES:
            files = _stream(bench, size)
            compared = dict(groupings)
            if size is _SIZES[0]:
                compared["stateful operator by key, counted in pandas, merged"] = stateful_by_key
            taken: dict[str, list[float]] = {name: [] for name in compared}
            for turn in range(size.repeats + 1):
                for name, group in compared.items():
                    seconds = _seconds(spark, files, size.files, group, str(bench.fresh()))
                    bench.console.print(f"  {name}: {seconds:.2f} s", style="dim")
                    if turn:  # the first turn is a warm-up
                        taken[name].append(seconds)
            # The speed of the machine varies, so times are compared within the same turn.
            ratios = {name: median(map(truediv, own, taken[_FIRST])) for name, own in taken.items()}
            for name, ratio in ratios.items():
                cells = (name, f"{median(taken[name]):.2f}", f"{ratio:.2f}")
                shown.add_row(size.millions, str(size.files), *cells)
            what = f"a micro-batch of {size.millions} M rows, {size.files} sources"
            bars += [
                Bar(f"{name}: {what}", ratios[name], most=1.15) for name in ("pull", "delegated")
            ]
    return shown, bars


def _stream(bench: Bench, size: Size) -> str:
    """Return a folder with the files of all micro-batches."""
    made = bench.fresh()
    for number in range(_BATCHES * size.files):
        path = bench.folder / f"alike-{size.rows}-{number % 8}"
        if not path.exists():
            keys = np.random.default_rng(number).integers(0, _KEYS, size.rows)
            pages = pa.array(np.char.add("page-", keys.astype(str)), pa.string())
            pq.write_table(pa.table({"page": pages}), path)
        os.link(path, made / f"{number}.parquet")
    return str(made)


def by_key(stream: DataFrame) -> DataFrame:
    """Count with Spark alone: rows go to Python by key, and Spark merges the partial counts.

    The tasks use the same optimizations as Steelyard's, and send each key once.
    """

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(batches)
        if rows:
            counted = pa.Table.from_batches(rows).group_by("page").aggregate([([], "count_all")])
            yield from counted.rename_columns(["page", "n"]).to_batches()

    rows = stream.repartition(WORKERS, "page")
    counted = rows.mapInArrow(shipped(count), "page string, n long")
    return counted.groupBy("page").agg(F.sum("n").alias("count"))


def stateful_by_key(stream: DataFrame) -> DataFrame:
    """Count with a stateful operator, whose tasks stay on the executors that hold their state."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.rows = handle.getValueState("rows", "rows long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            import pandas as pd

            counted = pd.concat([frame["page"] for frame in rows]).value_counts()
            before = self.rows.get()[0] if self.rows.exists() else 0
            self.rows.update((before + int(counted.sum()),))
            yield counted.rename("n").rename_axis("page").reset_index()

        def close(self) -> None:
            pass

    worker = F.pmod(F.hash("page"), F.lit(WORKERS)).alias("worker")
    counted = (
        stream.select("page", worker)
        .groupBy("worker")
        .transformWithStateInPandas(Count(), "page string, n long", "Update", "None")
    )
    return counted.groupBy("page").agg(F.sum("n").alias("count"))


def _seconds(
    spark: SparkSession,
    files: str,
    each: int,
    group: Callable[[DataFrame], DataFrame],
    checkpoint: str,
) -> float:
    """Return the median time of micro-batches with `each` files, without the first one."""
    reader = spark.readStream.schema("page string").option("maxFilesPerTrigger", each)
    writer = group(reader.parquet(files)).writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    deadline = time.time() + 30
    while len(query.recentProgress) < _BATCHES and time.time() < deadline:
        time.sleep(0.05)
    durations = [int(progress["batchDuration"]) for progress in query.recentProgress[1:]]
    return median(durations) / 1000
