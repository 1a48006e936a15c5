"""What a simulated message costs, against the bare routing of the same messages."""

from functools import partial

from rich.table import Table

from benchmarks.streams import hashes, ranks
from benchmarks.timing import best_seconds, table
from steelyard.schemes import GradedChoices, KeyGrouping, RandomChoices, Router, Scheme
from steelyard.simulator import ArrayStream, Cluster, ConsistentGrouping, Direct, simulate

MESSAGES = 20_000_000
DAY = 86_400


def run() -> list[Table]:
    stream = ArrayStream.at_rate(ranks(1.0, MESSAGES), rate=MESSAGES / DAY)
    cluster = Cluster.machines(10, fast=3, times=5, total=MESSAGES / DAY / 0.8)
    shown = table(
        f"A day of {MESSAGES:,} messages, Zipf 1.0, 10 workers {{3,5}} at 80 %, slots of a minute",
        "grouping",
        "seconds",
        "ns/message",
        "x routing alone",
    )
    for name, scheme, bins in (
        ("kg", KeyGrouping(), 10),
        ("cg over porc", RandomChoices(), 1000),
        ("cg over porc-graded", GradedChoices(), 1000),
    ):
        grouping = Direct(scheme) if bins == 10 else ConsistentGrouping(scheme)
        best = best_seconds(
            {
                "simulate": partial(simulate, stream, cluster, grouping),
                "route": partial(_route, scheme, bins),
            },
            rounds=2,
        )
        shown.add_row(
            name,
            f"{best['simulate']:.2f}",
            f"{best['simulate'] / MESSAGES * 1e9:.0f}",
            f"{best['simulate'] / best['route']:.1f}",
        )
    return [shown]


def _route(scheme: Scheme, bins: int) -> Router:
    router = scheme.router(bins)
    router.route_many(hashes(1.0, MESSAGES))
    return router
