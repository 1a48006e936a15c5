"""The paper's rules of delegation and the steady rules: slots until every worker has its share."""

import math
from dataclasses import dataclass, replace
from zlib import crc32

import pandas as pd

from steelyard.delegation import Measure, Measurement, PaperRules, Rules, SteadyRules, Work
from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, MetricValue
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results
from steelyard.schemes import RandomChoices
from steelyard.simulator import ConsistentGrouping, Outcome

WORKERS = 10
PER_SLOT = 12_000
CELLS = ((3, 5), (1, 2), (5, 4), (2, 10), (9, 10))
COUNTS = (5, 10, 20, 50, 100, 1000)
SOURCES = (1, 4, 16, 64)
NOISE = 0.1
PAPER, STEADY = "paper's rules", "steady rules"
RULES: dict[str, Rules] = {PAPER: PaperRules(), STEADY: SteadyRules()}


@dataclass(frozen=True)
class Noisy(Measure):
    """A measure with a random relative error; equal measurements have equal errors."""

    measure: Measure
    deviation: float

    def utilization(self, seen: Measurement, seconds: float) -> float:
        """Return the utilization, times 1 + a random number with mean 0 and this deviation."""
        part = crc32(repr(seen).encode()) / 2**32
        return self.measure.utilization(seen, seconds) * (
            1 + self.deviation * math.sqrt(12) * (part - 0.5)
        )


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of all {y,z} with 100 virtual workers per worker.

    Five clusters also run with other numbers of virtual workers, with noise, and with more
    sources.
    """
    small = scale.is_small
    slots = 120 if small else 200
    grid = CELLS if small else [(y, z) for y in range(1, WORKERS) for z in range(2, 11)]
    made = [_made(name, cell, 100, slots=slots) for cell in grid for name in RULES]
    for cell in CELLS[:2] if small else CELLS:
        for name in RULES:
            made += [_made(name, cell, n, slots=slots) for n in COUNTS if n < 100]
            sources = [s for s in SOURCES if 1 < s <= (16 if small else 64)]
            made += [_made(name, cell, 100, slots=slots, sources=s) for s in sources]
            made.append(_made(name, cell, 100, slots=slots, noise=NOISE))
            if not small:
                made.append(_made(name, cell, 1000, slots=1500))
    return made


def _made(
    name: str,
    cell: tuple[int, int],
    virtual_workers: int,
    *,
    slots: int,
    sources: int = 1,
    noise: float = 0.0,
) -> Configuration:
    stream = paper_setup.constant(PER_SLOT * slots, slots)
    rules = RULES[name]
    if noise:
        weight = 0.0 if name == PAPER else 0.1
        rules = replace(rules, measure=Noisy(Work(backlog_weight=weight), noise))
    return Configuration(
        "delegation",
        scheme=f"{name}, noise" if noise else name,
        stream=stream,
        cluster=paper_setup.cluster(stream, WORKERS, *cell),
        grouping=ConsistentGrouping(RandomChoices(paper_setup.EPSILON), virtual_workers, rules),
        cluster_name=paper_setup.machines(*cell),
        settings=paper_setup.settings(60.0, sources=sources),
        measure=when_settled,
    )


def when_settled(configuration: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the moves per slot and source in the last quarter, and the slots to converge.

    Convergence is measured by means over 5 slots.
    """
    last = outcome.moves[-(outcome.moves.size // 4) :]
    settled = outcome.converged_after(over=5)
    return [
        MetricValue("late_moves", float(last.mean()) / configuration.simulation_settings.sources),
        MetricValue("slots_to_settle", math.nan if settled is None else float(settled)),
    ]


def claims(results: Results) -> list[Claim]:
    """Test whether the rules converge, and after how many slots."""
    plain = {"virtual_workers": 100, "sources": 1}
    grid = {s: results.totals("slots_to_converge", scheme=s, **plain)["value"] for s in RULES}
    reached = {s: f"{values.notna().sum()} of {len(values)}" for s, values in grid.items()}
    medians = {s: _slots(_median(values.dropna())) for s, values in grid.items()}
    by_count = {
        s: _by(results, "virtual_workers", s, "slots_to_converge", sources=1) for s in RULES
    }
    by_source = {
        s: _by(results, "sources", s, "slots_to_settle", virtual_workers=100) for s in RULES
    }
    late = {
        s: results.value("late_moves", scheme=f"{s}, noise", virtual_workers=100) for s in RULES
    }
    return [
        Claim(
            "CG reduces an imbalance over time until every worker has its share",
            "Analysis, fair assignment",
            f"{{y,z}} clusters in which no worker stays above 95 % utilization, with 100 virtual "
            f"workers per worker: {reached[PAPER]} under the paper's rules (median of those "
            f"{medians[PAPER]} slots), {reached[STEADY]} under the steady rules (median "
            f"{medians[STEADY]} slots)",
            bool(grid[PAPER].notna().all()),
            why="One move per pair of workers and slot is slow. A busy worker waits forever if all "
            "free capacity is at workers between the thresholds 0.75 and 0.85, which are not idle.",
        ),
        Claim(
            "The steady rules converge where the paper's rules do not",
            "Delegation",
            f"slots to converge by virtual workers (- never, . not run) on {_cells(results)}: "
            f"paper's rules {by_count[PAPER]}; steady rules {by_count[STEADY]}",
            bool(grid[STEADY].notna().all() and grid[PAPER].isna().any()),
            why="Fewer than 20 virtual workers per worker are too coarse for some shares.",
            ours=True,
        ),
        Claim(
            "Many sources slow the rules down little",
            "Delegation",
            f"slots to converge by sources, means over 5 slots: paper's rules {by_source[PAPER]}; "
            f"steady rules {by_source[STEADY]}",
            None,
            why="A source with few messages distributes them less evenly, so single slots exceed "
            "95 % by chance. Means over 5 slots reduce this effect.",
            ours=True,
        ),
        Claim(
            "With noise in the measurements the steady rules make fewer moves than the paper's "
            "rules",
            "Delegation",
            f"moves per slot in the last quarter of the time, with 10 % noise: paper's rules "
            f"{late[PAPER]:.2f}, steady rules {late[STEADY]:.2f}",
            late[STEADY] < late[PAPER],
            ours=True,
        ),
    ]


def _cells(results: Results) -> str:
    known = set(results.table["cluster"])
    return " ".join(m for cell in CELLS if (m := paper_setup.machines(*cell)) in known)


def _by(results: Results, column: str, scheme: str, metric: str, **labels: object) -> str:
    """Return the slots on the five clusters for each value of a column."""
    rows = results.totals(metric, scheme=scheme, **labels)
    run = dict(zip(zip(rows[column], rows["cluster"], strict=True), rows["value"], strict=True))
    cells = [m for cell in CELLS if (m := paper_setup.machines(*cell)) in set(rows["cluster"])]
    return "; ".join(
        f"{at}: " + " ".join(_slots(run.get((at, cell))) for cell in cells)
        for at in sorted(rows[column].unique())
    )


def _median(values: pd.Series) -> float:
    return float(values.median()) if len(values) else math.nan


def _slots(slots: float | None) -> str:
    """Return a number, - for a run that did not converge, . for a missing run."""
    if slots is None:
        return "."
    return "-" if math.isnan(slots) else f"{slots:.0f}"


EXPERIMENT = Experiment(
    name="delegation",
    title="Rules of delegation",
    said="Not in the paper: the number of slots until no worker is above 95 % utilization. The "
    "paper says that workers reach their optimal numbers of virtual workers, and shows it on "
    "{3,5}.",
    configurations=configurations,
    panels=(
        *(
            Panel("slots_to_converge", "cluster", "slots to converge", "z", name, kind="heat",
                  where={"scheme": name, "virtual_workers": 100, "sources": 1}, limits=(0, 200))
            for name in RULES
        ),
        Panel("slots_to_converge", "virtual_workers", "slots to converge",
              "virtual workers per worker", "{3,5}", log="xy",
              where={"cluster": "{3,5}", "sources": 1}),
        Panel("slots_to_settle", "sources", "slots to converge, means over 5", "sources", "{3,5}",
              log="x", where={"cluster": "{3,5}", "virtual_workers": 100}),
    ),
    claims=claims,
    columns=2,
)  # fmt: skip
