"""The number of virtual workers per worker."""

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, series
from steelyard.experiments.experiment import Experiment, Scale
from steelyard.experiments.over_time import panels
from steelyard.experiments.results import Claim, Results

COUNTS = (5, 10, 20, 50, 100, 1000)
WORKERS, FAST, TIMES = 10, 3, 5


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of {3,5} with few and many virtual workers, under both rules."""
    made = []
    for stream in paper_setup.both(scale):
        slot = paper_setup.slot(stream)
        made += [
            Configuration(
                "virtual-workers",
                scheme=name,
                stream=stream,
                cluster=paper_setup.cluster(stream, WORKERS, FAST, TIMES),
                grouping=paper_setup.consistent(name, count),
                cluster_name=paper_setup.machines(FAST, TIMES),
                settings=paper_setup.settings(slot, paper_setup.tick(slot, stream)),
                measure=series,
            )
            for count in COUNTS
            for name in (paper_setup.PAPER, paper_setup.STEADY)
        ]
    return made


def claims(results: Results) -> list[Claim]:
    """Compare the numbers of virtual workers by the 99th percentile of the latency."""
    made = []
    for dataset in ("wp", "zf"):
        paper, steady = (
            results.by("virtual_workers", "latency_p99", dataset=dataset, scheme=name)
            for name in (paper_setup.PAPER, paper_setup.STEADY)
        )
        listed = f"p99 latency, s, by virtual workers: {paper_setup.listed(paper, ',.0f')}"
        made += [
            Claim(
                f"{dataset}: 5 virtual workers per worker are too few",
                "Q3, virtual workers",
                listed,
                bool(paper[5] > 1.5 * paper[10]),
            ),
            Claim(
                f"{dataset}: 1000 virtual workers per worker take longer to converge",
                "Q3, virtual workers",
                listed,
                bool(paper[1000] > 1.5 * paper[100]),
            ),
            Claim(
                f"{dataset}: 10 and 20 virtual workers per worker give similar results, 100 the "
                "best results",
                "Q3, virtual workers",
                listed,
                bool(paper.idxmin() == 100 and 0.5 < paper[10] / paper[20] < 2),
                why="Under the paper's rules a pair of workers moves one virtual worker per slot. "
                "With more virtual workers convergence takes longer, and queues grow meanwhile.",
            ),
            Claim(
                f"{dataset}: under the steady rules 1000 virtual workers per worker converge too",
                "Q3, virtual workers",
                f"p99 latency, s, by virtual workers: {paper_setup.listed(steady, ',.0f')}",
                bool(steady[1000] < paper[1000] / 3),
                why="With 5 and 10 virtual workers per worker the paper's rules continue to move "
                "virtual workers where the steady rules stop. This is better while the load "
                "changes."
                if dataset == "wp"
                else "",
                ours=True,
            ),
        ]
    return made


EXPERIMENT = Experiment(
    name="virtual-workers",
    title="The number of virtual workers",
    said="5 virtual workers per worker are too few, 1000 take too long to converge, 10 and 20 give "
    "similar results, 100 give the best results.",
    configurations=configurations,
    panels=(
        *panels({"dataset": "wp", "scheme": paper_setup.PAPER}, "paper's rules", "virtual_workers"),
        *panels({"dataset": "wp", "scheme": paper_setup.STEADY}, "steady rules", "virtual_workers"),
    ),
    claims=claims,
)
