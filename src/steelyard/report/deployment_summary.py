"""Summarize the runs of a deployment experiment.

Results of runs enter; one row for all repetitions of the same run leaves.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from steelyard.deployment.deployed_strategies import KEY_GROUPING, STRATEGIES, strategy_named
from steelyard.report.deployment_styles import CLUSTERS

if TYPE_CHECKING:
    from steelyard.deployment.run_results import RunResult


@dataclass(frozen=True)
class Spread:
    """The median, the minimum and the maximum of some numbers."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: "Iterable[float | None]") -> "Spread | None":
        """Compute the spread of the values that are not None; None if there are none."""
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known)) if known else None


@dataclass(frozen=True)
class SummaryRow:
    """All repetitions of one grouping strategy, at one delay, on one kind of cluster."""

    hetero: str
    data: str
    scheme: str
    delay: float
    runs: int
    throughput: Spread | None
    share: Spread | None
    """Efficiency in wall-clock time."""
    working: Spread | None
    """Efficiency in processing time."""
    p50: Spread | None
    p95: Spread | None
    p99: Spread | None
    copies: Spread | None
    state_bytes: Spread | None
    imbalance: Spread | None
    """Longest busy time over the mean busy time, minus 1, if each worker has its own machine."""
    converged: Spread | None
    """Slots until 95 % of the final efficiency."""
    against_kg: Spread | None
    """Throughput over that of key grouping with the same slow workers, in processing time."""
    clock_against_kg: Spread | None
    """The same in wall-clock time."""
    most_against_kg: Spread | None
    """The largest possible speedup: the total capacity over the throughput of key grouping."""

    @property
    def name(self) -> str:
        """The label of the strategy."""
        return strategy_named(self.scheme).label

    @property
    def cluster(self) -> str:
        """The label of the cluster, with the data unless it is the default."""
        return CLUSTERS[self.hetero] + ("" if self.data == "tw" else f" ({self.data})")

    def cells(self) -> list[str]:
        """Return the cells of a table for a terminal."""

        def shown(spread: Spread | None, form: str) -> str:
            return "" if spread is None else format(spread.middle, form)

        working = shown(self.working, ".0%")
        if self.working is not None and self.runs > 1:
            working += f" ({100 * self.working.least:.0f}-{self.working.most:.0%})"
        p99 = shown(self.p99, ".1f")
        return [
            self.scheme,
            f"{self.delay:g} ms",
            shown(self.throughput, ",.0f"),
            shown(self.share, ".0%"),
            working,
            f"{p99} s" if p99 else "",
            shown(self.against_kg, ".1f"),
            shown(self.copies, ".2f"),
        ]


def summary(rows: "Sequence[RunResult]") -> list[SummaryRow]:
    """Summarize all repetitions of the same run, in the order of clusters and strategies."""
    groups: dict[tuple[str, str, str, float], list[RunResult]] = defaultdict(list)
    for row in rows:
        groups[row.hetero, row.data, row.scheme, row.delay].append(row)
    clusters = list(CLUSTERS)
    schemes = [strategy.name for strategy in STRATEGIES]

    def place(group: tuple[str, str, str, float]) -> tuple[int, str, float, int]:
        hetero, data, scheme, delay = group
        return (clusters.index(hetero), "" if data == "tw" else data, delay, schemes.index(scheme))

    by_key = {row.run[1:]: row for row in rows if row.scheme == KEY_GROUPING.name}

    def times(own: "Iterable[RunResult]", rate: str, of_kg: str = "working") -> Spread | None:
        """Divide a rate of some runs by that of key grouping with the same slow workers."""
        pairs = [(getattr(row, rate), by_key.get(row.run[1:])) for row in own]
        return Spread.of(
            mine / getattr(kg, of_kg)
            for mine, kg in pairs
            if mine is not None and kg is not None and getattr(kg, of_kg)
        )

    lines = []
    for group in sorted(groups, key=place):
        own = groups[group]
        fast = [row for row in own if row.offered is None]
        lines.append(
            SummaryRow(
                *group,
                runs=len(fast),
                throughput=Spread.of(row.throughput for row in fast),
                share=Spread.of(row.share for row in fast),
                working=Spread.of(row.working_share for row in fast),
                p50=Spread.of(row.p50 for row in own),
                p95=Spread.of(row.p95 for row in own),
                p99=Spread.of(row.p99 for row in own),
                copies=Spread.of(row.copies for row in fast),
                state_bytes=Spread.of(row.state_bytes for row in fast),
                imbalance=Spread.of(row.imbalance for row in fast),
                converged=Spread.of(row.converged for row in fast),
                against_kg=times(fast, "working"),
                clock_against_kg=times(fast, "throughput", "throughput"),
                most_against_kg=times(fast, "limit"),
            )
        )
    return lines
