"""Measure a skewed join with Python work after it: the time, and the size of the largest task."""

from pyspark.sql import DataFrame

import steelyard as sy
from benchmarks.spark.bench import KEYS, WORKERS, Bar, Bench, Contestants, Measured, local, seconds
from benchmarks.spark.counting import COUNTED, count_batches
from benchmarks.timing import table
from steelyard.spark.shipping import shipped


def join(bench: Bench) -> Measured:
    shown = table(
        f"{bench.rows / 1e6:g} M rows, Zipf 1.4, joined with 100,000 keys, then counted in Python",
        "n, adaptive",
        "Spark's join: seconds",
        "largest task",
        "steelyard.join: seconds",
        "largest task",
    )
    bars = []
    with local(2, **{"spark.sql.autoBroadcastJoinThreshold": "-1"}) as spark:
        big = bench.frame(spark, 1.4)
        small = spark.range(KEYS).selectExpr("concat('page-', id) AS key", "id * 2 AS price")
        for n in WORKERS:
            for adaptive in (True, False):
                spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
                spark.conf.set("spark.sql.shuffle.partitions", str(n))
                contestants = _contestants(big, small, n)
                best = seconds(contestants, 1, warm_up=n == WORKERS[0] and adaptive)
                cells, label = [], f"{n}, {'on' if adaptive else 'off'}"
                for name, contestant in contestants.items():
                    sizes = [row["rows"] for row in contestant().collect()]
                    assert sum(sizes) == bench.rows
                    largest = max(sizes) * n / sum(sizes)
                    cells += [f"{best[name]:.1f}", f"{largest:.3f}"]
                    if name == "ours":
                        bars.append(Bar(f"join, largest task: {label}", largest, most=1.1))
                shown.add_row(label, *cells)
    return shown, bars


def _contestants(big: DataFrame, small: DataFrame, n: int) -> Contestants:
    counting = shipped(count_batches)
    return {
        "spark": lambda: big.join(small, "key").mapInArrow(counting, COUNTED),
        "ours": lambda: sy.join(big, small, "key", workers=n).mapInArrow(counting, COUNTED),
    }
