"""Compare `repartition` and `join` with Spark's own, on the Spark of this environment.

`make bench-versions` runs this on every version of Spark.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import steelyard as sy
from benchmarks.spark.bench import KEYS, Bench, Contestants, Measured, local, seconds
from benchmarks.timing import table

_SKEW, _WORKERS = 1.4, 24


def versions(bench: Bench) -> Measured:
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",  # joins shuffle both frames
        "spark.sql.shuffle.partitions": str(_WORKERS),
    }
    with local(2, **settings) as spark:
        shown = table(
            f"Spark {spark.version}: {bench.rows / 1e6:g} M rows, Zipf {_SKEW}, n = {_WORKERS}",
            "operation",
            "seconds",
            "relative to Spark's",
            "largest partition",
        )
        big = bench.frame(spark, _SKEW)
        small = spark.range(KEYS).selectExpr("concat('page-', id) AS key", "id * 2 AS price")
        for contestants in (_repartitions(big), _joins(big, small)):
            best = seconds(contestants, bench.repetitions)
            own = next(iter(best.values()))
            for name, contestant in contestants.items():
                cells = (
                    f"{best[name]:.2f}",
                    f"{best[name] / own:.2f}",
                    f"{_largest(contestant):.3f}",
                )
                shown.add_row(name, *cells)
    return shown, []


def _repartitions(frame: DataFrame) -> Contestants:
    plan = sy.plan(frame, "key", workers=_WORKERS)
    return {
        "repartition(n, key)": lambda: frame.repartition(_WORKERS, "key"),
        "sy.repartition, plan given": lambda: sy.repartition(frame, _WORKERS, "key", routing=plan),
        "sy.repartition": lambda: sy.repartition(frame, _WORKERS, "key"),
    }


def _joins(big: DataFrame, small: DataFrame) -> Contestants:
    return {
        "big.join(small, key)": lambda: big.join(small, "key"),
        "sy.join": lambda: sy.join(big, small, "key", workers=_WORKERS),
    }


def _largest(contestant: Callable[[], DataFrame]) -> float:
    """Return the rows of the largest partition, relative to an equal share."""
    sizes = contestant().groupBy(F.spark_partition_id()).count().collect()
    rows = [row["count"] for row in sizes]
    return float(max(rows) * _WORKERS / sum(rows))
