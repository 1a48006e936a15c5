"""Measure the time of the packed exchange and the memory of a worker; Python only counts rows."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import steelyard as sy
from benchmarks.spark.bench import SKEWS, WORKERS, Bar, Bench, Contestants, Measured, local, seconds
from benchmarks.timing import table
from steelyard.spark.shipping import shipped

COUNTED = "rows long, megabytes double"


def map_arrow(bench: Bench) -> Measured:
    shown = table(
        f"Counting {bench.rows / 1e6:g} M rows in Python: seconds (x by key)",
        "Zipf, n, adaptive",
        "by key, mapInArrow",
        "map_arrow",
        "map_arrow, plan given",
        "peak MB of a worker, by key",
        "map_arrow",
    )
    times: dict[tuple[float, int, bool], dict[str, float]] = {}
    bars = []
    with local(2) as spark:
        for skew in SKEWS:
            for n in WORKERS:
                for adaptive in (True, False) if n == 24 else (True,):
                    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
                    contestants = _contestants(bench.frame(spark, skew), n)
                    taken = seconds(contestants, bench.repetitions, warm_up=not times)
                    times[skew, n, adaptive] = taken
    for (skew, n, adaptive), best in times.items():
        label = f"{skew:g}, {n}, {'on' if adaptive else 'off'}"
        against = {name: taken / best["by key"] for name, taken in best.items()}
        peaks = ["", ""]
        if n == 24 and adaptive:
            # The peak is over the life of a Python worker, so each task starts a new one here.
            with local(2, **{"spark.python.worker.reuse": "false"}) as spark:
                contestants = _contestants(bench.frame(spark, skew), n)
                peaks = [
                    f"{_peak(contestants[name](), bench.rows):.0f}" for name in ("by key", "ours")
                ]
        shown.add_row(label, *(f"{best[name]:.1f} ({against[name]:.2f})" for name in best), *peaks)
        if not skew:
            bars.append(Bar(f"map_arrow, against by key: {label}", against["ours"], most=1.1))
    return shown, bars


def count_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_pydict({"rows": [rows], "megabytes": [_peak_megabytes()]})


def _count_table(rows: pa.Table) -> pa.Table:
    return pa.table({"rows": [rows.num_rows], "megabytes": [_peak_megabytes()]})


def _peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _contestants(frame: DataFrame, n: int) -> Contestants:
    planned = sy.plan(frame, "key", workers=n)
    counting = shipped(count_batches)  # so that Spark's tasks start as cheaply as ours
    return {
        "by key": lambda: frame.repartition(n, "key").mapInArrow(counting, COUNTED),
        "ours": lambda: sy.group_by(frame, "key", workers=n).map_arrow(_count_table, COUNTED),
        "plan": lambda: sy.group_by(frame, "key", workers=n, routing=planned).map_arrow(
            _count_table, COUNTED
        ),
    }


def _peak(frame: DataFrame, rows: int) -> float:
    counted = frame.agg(F.sum("rows"), F.max("megabytes")).first()
    assert counted is not None
    assert counted[0] == rows
    return float(counted[1])
