"""Steelyard on Spark against what Spark offers: `python -m benchmarks.on_spark [NAME ...]`.

Contestants take turns in one run, all of them warmed up; read the ratios, machines are noisy.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import steelyard as sy
from benchmarks.timing import table
from steelyard.datasets import zipf_ranks
from steelyard.spark.session import session
from steelyard.spark.shipping import shipped

KEYS = 100_000
SKEWS = (0.0, 1.0, 1.4)
WORKERS = (8, 24)
_PIECES = 16

Contestants = dict[str, Callable[[], DataFrame]]


@dataclass(frozen=True)
class Bench:
    """The rows to measure on, as Parquet files, one folder for each skew."""

    folder: Path
    rows: int
    rounds: int

    def frame(self, spark: SparkSession, skew: float) -> DataFrame:
        return spark.read.parquet(str(self.folder / f"zipf-{skew}"))

    def write(self, spark: SparkSession) -> None:
        for skew in SKEWS:
            _write_zipf(spark, skew, self.rows, str(self.folder / f"zipf-{skew}"))


def local(slots: int, **settings: str) -> AbstractContextManager[SparkSession]:
    more = {"spark.driver.memory": "6g", **settings}
    return session("steelyard benchmarks", f"local[{slots}]", more)


def _write_zipf(spark: SparkSession, skew: float, rows: int, path: str) -> None:
    piece = -(-rows // _PIECES)

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                count = min(piece, rows - number * piece)
                if skew:
                    ranks = zipf_ranks(count, skew, seed=number, keys=KEYS)
                else:
                    ranks = np.random.default_rng(number).integers(0, KEYS, count)
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


def drain(frame: DataFrame) -> None:
    """Run it all, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def seconds(contestants: Contestants, rounds: int) -> dict[str, float]:
    """The best time of each, in turns; one round before is not counted."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(rounds + 1):
        for name, contestant in contestants.items():
            begin = time.perf_counter()
            drain(contestant())
            if turn:
                best[name] = min(best[name], time.perf_counter() - begin)
    return best


def balance(frame: DataFrame, workers: int) -> tuple[float, float]:
    """The largest partition against its share, and the copies of a key."""
    placed = frame.groupBy("key", F.spark_partition_id().alias("p")).count()
    by_key = placed.groupBy("p").agg(F.sum("count").alias("rows"), F.count("key").alias("copies"))
    found = by_key.toArrow()
    rows, copies = found["rows"].to_numpy(), found["copies"].to_numpy()
    keys = frame.select("key").distinct().count()
    return float(rows.max() * workers / rows.sum()), float(copies.sum() / keys)


def repartition(bench: Bench) -> list[Table]:
    """`repartition` against its peers, adaptive execution on and off."""
    shown = table(
        f"{bench.rows / 1e6:g} M rows to n partitions: seconds (x by key) · largest · copies",
        "Zipf, n, adaptive",
        "by key",
        "round robin",
        "200 by key",
        "rebalance",
        "10 salts",
        "plan given",
        "with counting",
    )
    with local(2) as spark:
        bench.write(spark)
        settings = [(skew, n, True) for skew in SKEWS for n in WORKERS] + [(1.0, 24, False)]
        for skew, n, adaptive in settings:
            spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
            frame = bench.frame(spark, skew)
            contestants = _repartitionings(frame, n)
            best = seconds(contestants, bench.rounds)
            cells = []
            for name, contestant in contestants.items():
                largest, copies = balance(contestant(), 200 if name == "200 by key" else n)
                cells.append(
                    f"{best[name]:.1f} ({best[name] / best['by key']:.2f}) "
                    f"{largest:.3f} {copies:.4f}"
                )
            shown.add_row(f"{skew:g}, {n}, {'on' if adaptive else 'off'}", *cells)
    return [shown]


def _repartitionings(frame: DataFrame, n: int) -> Contestants:
    planned = sy.plan(frame, "key", workers=n)
    return {
        "by key": lambda: frame.repartition(n, "key"),
        "round robin": lambda: frame.repartition(n),
        "200 by key": lambda: frame.repartition(200, "key"),
        "rebalance": lambda: frame.hint("rebalance", "key"),
        "10 salts": lambda: frame.repartition(n, "key", F.col("value") % 10),
        "plan given": lambda: sy.repartition(frame, n, "key", plan=planned),
        "with counting": lambda: sy.repartition(frame, n, "key"),
    }


def _count_table(rows: pa.Table) -> pa.Table:
    return pa.table({"rows": [rows.num_rows], "megabytes": [_peak_megabytes()]})


def _count_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows], "megabytes": [_peak_megabytes()]})


def _peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


_COUNTED = "rows long, megabytes double"


def map_arrow(bench: Bench) -> list[Table]:
    """Python that only counts: what the exchange itself costs, and what a worker needs."""
    shown = table(
        f"Counting {bench.rows / 1e6:g} M rows in Python: seconds (x by key)",
        "Zipf, n",
        "by key, mapInArrow",
        "map_arrow",
        "map_arrow, plan given",
        "peak MB by key",
        "peak MB",
    )
    with local(2) as spark:
        if not (bench.folder / "zipf-0.0").exists():
            bench.write(spark)
        times = {}
        for skew in SKEWS:
            for n in WORKERS:
                contestants = _countings(bench.frame(spark, skew), n)
                times[skew, n] = seconds(contestants, bench.rounds)
    with local(2, **{"spark.python.worker.reuse": "false"}) as spark:
        for (skew, n), best in times.items():
            peaks = {}
            for name, contestant in _countings(bench.frame(spark, skew), n).items():
                counted = contestant().agg(F.sum("rows"), F.max("megabytes")).first()
                assert counted is not None
                assert counted[0] == bench.rows
                peaks[name] = counted[1]
            by_key = best["by key"]
            shown.add_row(
                f"{skew:g}, {n}",
                *(f"{taken:.1f} ({taken / by_key:.2f})" for taken in best.values()),
                f"{peaks['by key']:.0f}",
                f"{peaks['ours']:.0f}",
            )
    return [shown]


def _countings(frame: DataFrame, n: int) -> Contestants:
    planned = sy.plan(frame, "key", workers=n)
    counting = shipped(_count_batches)  # the peer's tasks start as cheaply as ours
    return {
        "by key": lambda: frame.repartition(n, "key").mapInArrow(counting, _COUNTED),
        "ours": lambda: sy.group_by(frame, "key", workers=n).map_arrow(_count_table, _COUNTED),
        "plan": lambda: sy.group_by(frame, "key", workers=n, plan=planned).map_arrow(
            _count_table, _COUNTED
        ),
    }


def work(bench: Bench) -> list[Table]:
    """50 microseconds of work a row, Zipf 1.4, 8 slots that two cores can show: they sleep."""
    rows = bench.rows * 2 // 5
    shown = table(
        f"{rows / 1e6:g} M rows of 50 µs, Zipf 1.4, 8 slots: work done at once, of 8",
        "slots",
        "by key, mapInArrow",
        "1 task each",
        "2",
        "4",
        "8",
    )
    with local(8) as spark:
        path = str(bench.folder / "work")
        _write_zipf(spark, 1.4, rows, path)
        frame = spark.read.parquet(path)
        for slots in ("equal", "2 of 8 half as fast"):
            cells = []
            drain(_sleep(frame, 1, _sleeper(None, 0.0)))
            for tasks in (0, 1, 2, 4, 8):
                tokens = tempfile.mkdtemp(dir=bench.folder) if slots != "equal" else None
                begin = time.perf_counter()
                drain(_sleep(frame, tasks, _sleeper(tokens, 50e-6)))
                taken = time.perf_counter() - begin
                cells.append(f"{rows * 50e-6 / taken:.2f} ({taken:.0f} s)")
            shown.add_row(slots, *cells)
    return [shown]


Sleeper = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _sleep(frame: DataFrame, tasks: int, sleeper: Sleeper) -> DataFrame:
    """Sleep for every row, by key grouping or on workers of so many tasks each."""
    if tasks == 0:
        return frame.repartition(8, "key").mapInArrow(shipped(sleeper), "n long")

    def as_table(rows: pa.Table) -> pa.Table:
        return pa.Table.from_batches(list(sleeper(rows.to_batches())))

    return sy.group_by(frame, "key", workers=8, tasks_per_worker=tasks).map_arrow(
        as_table, "n long"
    )


def _sleeper(tokens: str | None, per_row: float) -> Sleeper:
    """Sleeps for every row, in pieces of 5 ms; who finds one of two tokens takes twice as long."""

    def slept(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        factor = 1.0
        if tokens is not None:
            mine = f"{tokens}/{os.getpid()}"
            if not os.path.exists(mine) and len(os.listdir(tokens)) < 2:  # noqa: PTH110, PTH208
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


def join(bench: Bench) -> list[Table]:
    """A skewed join with Python work after it: who gets how much of it."""
    shown = table(
        f"{bench.rows / 1e6:g} M rows, Zipf 1.4, joined with 100,000 keys, then counted in Python",
        "n",
        "Spark's join: seconds",
        "largest task",
        "ours: seconds",
        "largest task",
    )
    with local(2, **{"spark.sql.autoBroadcastJoinThreshold": "-1"}) as spark:
        if not (bench.folder / "zipf-0.0").exists():
            bench.write(spark)
        big = bench.frame(spark, 1.4)
        small = spark.range(KEYS).selectExpr("concat('page-', id) AS key", "id * 2 AS price")
        for n in WORKERS:
            spark.conf.set("spark.sql.shuffle.partitions", str(n))
            contestants = _joins(big, small, n)
            best = seconds(contestants, bench.rounds)
            cells = []
            for name, contestant in contestants.items():
                sizes = [row["rows"] for row in contestant().collect()]
                assert sum(sizes) == bench.rows
                cells += [f"{best[name]:.1f}", f"{max(sizes) * n / sum(sizes):.3f}"]
            shown.add_row(str(n), *cells)
    return [shown]


def _joins(big: DataFrame, small: DataFrame, n: int) -> Contestants:
    counting = shipped(_count_batches)
    return {
        "spark": lambda: big.join(small, "key").mapInArrow(counting, _COUNTED),
        "ours": lambda: sy.join(big, small, "key", workers=n).mapInArrow(counting, _COUNTED),
    }


PARTS = {"repartition": repartition, "map_arrow": map_arrow, "work": work, "join": join}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(PARTS), metavar="NAME", help=str([*PARTS]))
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    for name in given.names:
        if name not in PARTS:
            parser.error(f"no benchmark {name!r}; there are: {', '.join(PARTS)}")
    console = Console(width=140)
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        bench = Bench(Path(folder), given.rows, given.rounds)
        for name in given.names:
            begin = time.perf_counter()
            for shown in PARTS[name](bench):
                console.print(shown)
            console.print(f"measured in {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
