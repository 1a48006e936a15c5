"""Measure a join with mild skew and no work after it, where Spark's own join is good enough."""

from pyspark.sql import DataFrame

import steelyard as sy
from benchmarks.spark.bench import Bar, Bench, Contestants, Measured, local, seconds
from benchmarks.timing import table

_SKEW, _WORKERS = 0.8, 8
_SETTINGS = {"200, on": (200, True), "8, off": (_WORKERS, False)}
"""Shuffle partitions of Spark's own join, and whether adaptive execution is on."""


def mild_join(bench: Bench) -> Measured:
    rows = bench.rows * 2 // 5
    keys = rows // 10
    shown = table(
        f"{rows / 1e6:g} M rows, Zipf {_SKEW}, joined with {keys / 1e6:g} M unique keys: "
        "seconds (x Spark's join)",
        "partitions, adaptive",
        "Spark's join",
        "steelyard.join",
        "with a plan",
    )
    bars = []
    with local(2, **{"spark.sql.autoBroadcastJoinThreshold": "-1"}) as spark:
        big = bench.frame(spark, _SKEW, rows, keys)
        small = bench.folder / "unique"
        unique = spark.range(keys).selectExpr("concat('page-', id) AS key", "id * 2 AS price")
        unique.write.parquet(str(small))
        contestants = _contestants(big, spark.read.parquet(str(small)))
        for label, (partitions, adaptive) in _SETTINGS.items():
            spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
            best = seconds(contestants, bench.repetitions)
            ratios = {name: time / best["spark"] for name, time in best.items()}
            shown.add_row(label, *(f"{best[name]:.1f} ({ratios[name]:.2f})" for name in best))
            bars.append(Bar(f"mild join, counted: {label}", ratios["ours"], most=2.0))
            bars.append(Bar(f"mild join, with a plan: {label}", ratios["planned"], most=1.2))
    return shown, bars


def _contestants(big: DataFrame, small: DataFrame) -> Contestants:
    plan = sy.plan(big, "key", workers=_WORKERS)
    return {
        "spark": lambda: big.join(small, "key"),
        "ours": lambda: sy.join(big, small, "key", workers=_WORKERS),
        "planned": lambda: sy.join(big, small, "key", workers=_WORKERS, routing=plan),
    }
