"""Compare adding rows to partial states with Arrow's own grouping of the same rows."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from rich.table import Table

from benchmarks.streams import ranks
from benchmarks.timing import best_seconds, table
from steelyard.aggregators import (
    Aggregation,
    Aggregator,
    CollectSet,
    Count,
    Max,
    Mean,
    Sum,
    TopK,
    Variance,
)
from steelyard.aggregators.sketches import ApproxDistinct, Quantiles

ROWS = 1_000_000


def _by_arrow(rows: pa.Table) -> pa.Table:
    return rows.group_by("key", use_threads=False).aggregate([("value", "sum")])


def run() -> list[Table]:
    numbers = pa.array(ranks(1.0, ROWS), pa.int64())
    rows = pa.record_batch({"key": numbers.cast(pa.string()), "value": numbers})
    tried: list[Aggregator] = [
        Count(),
        Sum("value"),
        Max("value"),
        Mean("value"),
        Variance("value"),
        CollectSet("value"),
        TopK("value"),
        ApproxDistinct("value"),
        Quantiles("value"),
    ]
    aggregations = {a.name: Aggregation([a], ["key"], rows.schema) for a in tried}
    contestants: dict[str, Callable[[], object]] = {
        name: partial(agg.add, agg.create(), rows) for name, agg in aggregations.items()
    }
    contestants["arrow"] = partial(_by_arrow, pa.Table.from_batches([rows]))
    best = best_seconds(contestants, repetitions=2)
    keys = len(numbers.unique())
    shown = table(
        f"Adding {ROWS:,} rows of {keys:,} keys, Zipf 1.0",
        "aggregator",
        "M rows/s",
        "relative to Arrow's sum",
    )
    for name in aggregations:
        shown.add_row(name, f"{ROWS / best[name] / 1e6:.2f}", f"{best['arrow'] / best[name]:.3f}")
    return [shown]
