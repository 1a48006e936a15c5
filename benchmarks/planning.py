"""Measure plans from true counts: balance, key copies, and the time to plan and to route."""

from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from benchmarks.streams import MESSAGES, hashes, ranks
from benchmarks.timing import best_seconds, table
from steelyard import metrics
from steelyard.hashing import buckets_of, mix64
from steelyard.plans import Planner, RoutingPlan

BUCKETS = 8192
BATCH = 65_536


def _first_plan(bins: int, counts: NDArray[np.int64]) -> RoutingPlan:
    return Planner(bins).update(counts)


def run() -> list[Table]:
    shown = table(
        f"Plans over {BUCKETS:,} buckets, epsilon 0.01, {MESSAGES:,} messages",
        "stream",
        "largest bin",
        "by key grouping",
        "key copies",
        "first plan, ms",
        "next plan, ms",
        "route, ns per row",
        "relative to numpy's take",
        "JSON, kB",
    )
    salts = mix64(np.arange(MESSAGES, dtype=np.uint64))
    for skew in (0.5, 1.0, 1.4, 2.0):
        buckets = buckets_of(hashes(skew), BUCKETS)
        counts = np.bincount(buckets, minlength=BUCKETS)
        for bins in (24, 100, 1000):
            planner = Planner(bins)
            plan = planner.update(counts)
            whole = Planner(bins).plan
            some, some_salts = buckets[:BATCH].copy(), salts[:BATCH].copy()
            best = best_seconds(
                {
                    "first plan": partial(_first_plan, bins, counts),
                    "next plan": partial(planner.update, counts),
                    "route": partial(plan.route, some, some_salts),
                    "take": partial(plan.bins_of.take, some),
                },
                repetitions=7,
            )
            routed = plan.route(buckets, salts)
            shown.add_row(
                f"z {skew}, {bins:,} bins",
                f"{plan.shares.max() * bins:.3f}",
                f"{whole.shares_of(counts).max() * bins:.2f}",
                f"{metrics.memory_cost(ranks(skew), routed, bins):.4f}",
                f"{best['first plan'] * 1e3:.1f}",
                f"{best['next plan'] * 1e3:.1f}",
                f"{best['route'] / BATCH * 1e9:.1f}",
                f"{best['route'] / best['take']:.1f}",
                f"{len(plan.to_json()) / 1e3:.0f}",
            )
    return [shown]
