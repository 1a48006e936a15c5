"""Common parts of the measurements: the rows, the timing, and the limits for results."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.timing import table
from steelyard.datasets import zipf_ranks
from steelyard.spark.session import session

KEYS = 100_000
SKEWS = (0.0, 1.0, 1.4)
WORKERS = (8, 24)
_PIECES = 16

Contestants = dict[str, Callable[[], DataFrame]]


@dataclass(frozen=True)
class Bar:
    """A measured value and its limit."""

    measure: str
    value: float
    most: float | None = None
    least: float | None = None

    @property
    def is_cleared(self) -> bool:
        above = self.least is None or self.value >= self.least
        return above and (self.most is None or self.value <= self.most)

    @property
    def wanted(self) -> str:
        return f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"


Measured = tuple[Table, list[Bar]]


@dataclass(frozen=True)
class Bench:
    """The rows of the measurements, as Parquet files, with one folder for each skew."""

    folder: Path
    rows: int
    repetitions: int

    def frame(
        self, spark: SparkSession, skew: float, rows: int | None = None, keys: int = KEYS
    ) -> DataFrame:
        rows = rows or self.rows
        path = self.folder / f"zipf-{skew}-{rows}-{keys}"
        if not path.exists():
            _write_zipf(spark, skew, rows, keys, str(path))
        return spark.read.parquet(str(path))


def local(slots: int, **settings: str) -> AbstractContextManager[SparkSession]:
    # Few partitions by default: the jobs that check a result are not measured.
    more = {"spark.driver.memory": "6g", "spark.sql.shuffle.partitions": "8", **settings}
    return session("steelyard benchmarks", f"local[{slots}]", more)


def drain(frame: DataFrame) -> None:
    """Compute all rows of a frame and discard them."""
    frame.write.format("noop").mode("overwrite").save()


def seconds(
    contestants: Contestants, repetitions: int, *, warm_up: bool = True
) -> dict[str, float]:
    """Return the best time of each contestant; they take turns, and a warm-up does not count."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(repetitions + warm_up):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            drain(contestant())
            if turn >= warm_up:
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


def show(console: Console, parts: Mapping[str, Callable[[], Measured]]) -> None:
    """Measure every part and print its table; then print which limits were met."""
    bars: list[Bar] = []
    for part in parts.values():
        begin = time.perf_counter()
        shown, found = part()
        bars += found
        console.print(shown)
        console.print(f"measured in {time.perf_counter() - begin:.0f} s")
    verdicts = table("Limits", "measure", "limit", "measured", "met")
    for bar in bars:
        verdict = "yes" if bar.is_cleared else "[red]no"
        verdicts.add_row(bar.measure, bar.wanted, f"{bar.value:.3f}", verdict)
    console.print(verdicts)


def _write_zipf(spark: SparkSession, skew: float, rows: int, keys: int, path: str) -> None:
    piece = -(-rows // _PIECES)

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                count = min(piece, rows - number * piece)
                if skew:
                    ranks = zipf_ranks(count, skew, seed=number, keys=keys)
                else:
                    ranks = np.random.default_rng(number).integers(0, keys, count)
                for start in range(0, count, 100_000):
                    part = ranks[start : start + 100_000]
                    first = number * piece + start
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array(np.char.add("page-", part.astype(str)), pa.string()),
                            pa.array(np.arange(first, first + part.size)),
                        ],
                        ["key", "value"],
                    )

    pieces = spark.range(0, _PIECES, 1, _PIECES)
    pieces.mapInArrow(make, "key string, value long").write.mode("overwrite").parquet(path)
