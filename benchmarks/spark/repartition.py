"""Compare `repartition` with Spark's own: the time, the largest partition, the key copies."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import steelyard as sy
from benchmarks.spark.bench import SKEWS, WORKERS, Bar, Bench, Contestants, Measured, local, seconds
from benchmarks.timing import table
from steelyard.spark.versions.arrow import to_arrow

_SETTINGS = [(skew, n, True) for skew in SKEWS for n in WORKERS]
_SETTINGS += [(skew, 24, False) for skew in SKEWS]


def repartition(bench: Bench) -> Measured:
    names = ["by key", "round robin", "plan given", "with counting"]
    peers = ["200 by key", "rebalance", "10 salts"]
    shown = table(
        f"{bench.rows / 1e6:g} M rows to n partitions: seconds (x by key) · largest · copies",
        *("Zipf, n, adaptive", *names, *peers),
    )
    bars = []
    with local(2) as spark:
        for number, (skew, n, adaptive) in enumerate(_SETTINGS):
            spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
            contestants = _contestants(bench.frame(spark, skew), n)
            if not (n == 24 and adaptive):  # the other peers run once for each skew
                contestants = {name: contestants[name] for name in names}
            best = seconds(contestants, bench.repetitions, warm_up=number < 2)
            cells, label = [], f"{skew:g}, {n}, {'on' if adaptive else 'off'}"
            largest = copies = 0.0
            for name, contestant in contestants.items():
                if name != "with counting":  # its plan is the same as that of "plan given"
                    partitions = 200 if name == "200 by key" else n
                    largest, copies = _balance(contestant(), partitions)
                against = best[name] / best["by key"]
                cells.append(f"{best[name]:.1f} ({against:.2f}) {largest:.3f} {copies:.3f}")
                bars += _bars(name, label, skew, n, against, largest, copies)
            counted = best["with counting"] / best["round robin"]
            bars.append(Bar(f"with counting, against round robin: {label}", counted, most=1.0))
            shown.add_row(label, *cells)
    return shown, bars


def _bars(
    name: str, label: str, skew: float, n: int, against: float, largest: float, copies: float
) -> list[Bar]:
    limits = {"plan given": 1.15, "with counting": 1.6}
    if name not in limits:
        return []
    bars = [Bar(f"{name}, against by key: {label}", against, most=limits[name])]
    if skew and n == 24:
        bars.append(Bar(f"{name}, largest partition: {label}", largest, most=1.02))
    if skew == 1.0:
        bars.append(Bar(f"{name}, copies: {label}", copies, most=1.02))
    return bars


def _contestants(frame: DataFrame, n: int) -> Contestants:
    planned = sy.plan(frame, "key", workers=n)
    return {
        "by key": lambda: frame.repartition(n, "key"),
        "round robin": lambda: frame.repartition(n),
        "plan given": lambda: sy.repartition(frame, n, "key", routing=planned),
        "with counting": lambda: sy.repartition(frame, n, "key"),
        "200 by key": lambda: frame.repartition(200, "key"),
        "rebalance": lambda: frame.hint("rebalance", "key"),
        "10 salts": lambda: frame.repartition(n, "key", F.col("value") % 10),
    }


def _balance(frame: DataFrame, partitions: int) -> tuple[float, float]:
    """Return the largest partition relative to its share, and the mean copies of a key."""
    placed = frame.groupBy("key", F.spark_partition_id().alias("p")).count()
    found = placed.groupBy("p").agg(
        F.sum("count").alias("rows"), F.count("key").alias("copies"), F.collect_set("key")
    )
    by_key = to_arrow(found)
    rows, copies = by_key["rows"].to_numpy(), by_key["copies"].to_numpy()
    keys = len({key for own in by_key.column(3).to_pylist() for key in own})
    return float(rows.max() * partitions / rows.sum()), float(copies.sum() / keys)
