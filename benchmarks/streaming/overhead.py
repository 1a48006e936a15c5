"""What a micro-batch costs that has no work to speak of, against Spark's own way by key.

Small ones show what is paid for each micro-batch, large ones what is paid for each row. Workers
that stay are also compared with workers that stay without us, whose rows go through pandas one by
one: in small micro-batches only.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
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

_ROWS, _KEYS, _BATCHES, _ROUNDS = 1_000_000, 100_000, 4, 3
_FILES_EACH = (1, 8)


def overhead(bench: Bench) -> Measured:
    def pull(stream: DataFrame) -> DataFrame:
        control = bench.fresh() / "control"
        return sy.group_by(stream, "page", workers=WORKERS, control=control).aggregate(sy.Count())

    def delegated(stream: DataFrame) -> DataFrame:
        control, placement = bench.fresh() / "control", "delegated"
        grouped = sy.group_by(stream, "page", workers=WORKERS, control=control, placement=placement)
        return grouped.aggregate(sy.Count())

    ways: dict[str, Callable[[DataFrame], DataFrame]] = {
        "repartition(n, key), counted in Python, merged": by_key,
        "pull": pull,
        "delegated": delegated,
    }
    shown = table(
        f"A micro-batch, {_KEYS:,} keys alike",
        *("M rows", "grouped by", "seconds", "against the first"),
    )
    bars = []
    with local() as spark:
        for each in _FILES_EACH:
            files = _stream(bench, each)
            compared = dict(ways)
            if each == min(_FILES_EACH):
                compared["by key to workers that stay, counted in pandas, merged"] = staying_by_key
            best = dict.fromkeys(compared, float("inf"))
            for turn in range(_ROUNDS + 1):
                for name, way in compared.items():
                    taken = _seconds(spark, files, each, way, str(bench.fresh()))
                    bench.console.print(f"  {name}: {taken:.2f} s", style="dim")
                    if turn:  # the first one warms up
                        best[name] = min(best[name], taken)
            first = next(iter(best.values()))
            millions = f"{each * _ROWS / 1e6:g}"
            for name, taken in best.items():
                shown.add_row(millions, name, f"{taken:.2f}", f"{taken / first:.2f}")
            bars += [
                Bar(f"{name}: a micro-batch of {millions} M rows", best[name] / first, most=1.15)
                for name in ("pull", "delegated")
            ]
    return shown, bars


def _stream(bench: Bench, each: int) -> str:
    """Files for all micro-batches, of so many files each."""
    made = bench.fresh()
    for number in range(_BATCHES * each):
        path = bench.folder / f"alike-{number % max(_FILES_EACH)}"
        if not path.exists():
            keys = np.random.default_rng(number).integers(0, _KEYS, _ROWS)
            pages = pa.array(np.char.add("page-", keys.astype(str)), pa.string())
            pq.write_table(pa.table({"page": pages}), path)
        os.link(path, made / f"{number}.parquet")
    return str(made)


def by_key(stream: DataFrame) -> DataFrame:
    """The same work without us: rows by key to Python, partial counts, merged by Spark."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            counted = pa.Table.from_batches([batch]).group_by("page").aggregate([([], "count_all")])
            yield from counted.rename_columns(["page", "n"]).to_batches()

    counted = stream.repartition(WORKERS, "page").mapInArrow(count, "page string, n long")
    return counted.groupBy("page").agg(F.sum("n").alias("count"))


def staying_by_key(stream: DataFrame) -> DataFrame:
    """The same with a stateful operator, which keeps its workers where they are."""
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
    way: Callable[[DataFrame], DataFrame],
    checkpoint: str,
) -> float:
    """A micro-batch of so many files, without the first, which starts what the others have."""
    reader = spark.readStream.schema("page string").option("maxFilesPerTrigger", each)
    writer = way(reader.parquet(files)).writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    deadline = time.time() + 30
    while len(query.recentProgress) < _BATCHES and time.time() < deadline:
        time.sleep(0.05)
    durations = [int(progress["batchDuration"]) for progress in query.recentProgress[1:]]
    return median(durations) / 1000
