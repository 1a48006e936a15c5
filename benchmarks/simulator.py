"""Compare the time to simulate messages with the time to route the same messages."""

from functools import partial

import numpy as np
import pyarrow as pa
from rich.table import Table

from benchmarks.timing import best_seconds, table
from steelyard import datasets
from steelyard.hashing import Hashes, hash_keys
from steelyard.schemes import GradedChoices, KeyGrouping, RandomChoices, Router, Scheme
from steelyard.simulator import ArrayStream, Cluster, ConsistentGrouping, Direct, simulate

WORKERS, VIRTUAL = 10, 100


def run() -> list[Table]:
    shown = table(
        "One day: 10 workers {3,5}, 80 % utilization, 100 virtual workers each, slots of a minute",
        "stream",
        "grouping",
        "seconds",
        "ns per message",
        "relative to routing",
    )
    for name in ("zf", "wp"):
        day = datasets.named(name)
        chunks = list(day.chunks())
        keys = np.concatenate([chunk.keys for chunk in chunks])
        stream = ArrayStream(keys, np.concatenate([chunk.times for chunk in chunks]))
        hashes = hash_keys(pa.array(keys, pa.int64()))
        total = day.messages / day.seconds / 0.8
        cluster = Cluster.machines(WORKERS, fast=3, times=5, total=total)
        for label, scheme, bins in (
            ("kg", KeyGrouping(), WORKERS),
            ("cg over porc", RandomChoices(), WORKERS * VIRTUAL),
            ("cg over porc-graded", GradedChoices(), WORKERS * VIRTUAL),
        ):
            grouping = Direct(scheme) if bins == WORKERS else ConsistentGrouping(scheme, VIRTUAL)
            best = best_seconds(
                {
                    "simulate": partial(simulate, stream, cluster, grouping),
                    "route": partial(_route, scheme, bins, hashes),
                },
                repetitions=7,
            )
            shown.add_row(
                f"{name}, {day.messages / 1e6:.0f} M",
                label,
                f"{best['simulate']:.2f}",
                f"{best['simulate'] / day.messages * 1e9:.0f}",
                f"{best['simulate'] / best['route']:.1f}",
            )
    return [shown]


def _route(scheme: Scheme, bins: int, hashes: Hashes) -> Router:
    router = scheme.router(bins)
    router.route_many(hashes)
    return router
