"""The slots until no worker is above 95 %, by the paper's rules and by the steady rules."""

from rich.table import Table

from benchmarks.timing import table
from steelyard.delegation import PaperRules, Rules, SteadyRules
from tests.delegation.model import Model

CLUSTERS = [(3, 5), (1, 2), (5, 4), (2, 10), (9, 10)]
SEEDS = (0, 1, 2)


def run() -> list[Table]:
    shown = table(
        "Slots to converge, paper -> steady (10 workers at 80 %, 12,000 messages per slot; median "
        "of three seeds; 'never': more than 280 slots)",
        "virtual workers",
        *(f"{{{fast},{times}}}" for fast, times in CLUSTERS),
    )
    for each in (5, 10, 20, 100, 1000):
        cells = [
            f"{_median(PaperRules(), each, cluster)} -> {_median(SteadyRules(), each, cluster)}"
            for cluster in CLUSTERS
        ]
        shown.add_row(str(each), *cells)
    return [shown]


def _median(rules: Rules, each: int, cluster: tuple[int, int]) -> str:
    slots = [
        Model(rules, each=each, seed=seed).slots_to_converge(*cluster, slots=300) for seed in SEEDS
    ]
    ranked = sorted(300 if s is None else s for s in slots)
    middle = ranked[len(ranked) // 2]
    return "never" if middle == 300 else str(middle)
