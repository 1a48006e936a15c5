"""Many sources, each with its own idea of the loads and of who owns what."""

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results

SOURCES = (1, 10, 50, 100)
VIRTUAL = 10
SLOTS = 144
"""Of ten minutes: every source hears of every worker in each."""


def configurations(scale: Scale) -> list[Configuration]:
    """Every number of sources with every number of workers."""
    counts = (1, 10, 50) if scale.is_small else SOURCES
    return [
        Configuration(
            "sources",
            scheme=paper_setup.PAPER,
            stream=stream,
            cluster=paper_setup.cluster(stream, workers),
            grouping=paper_setup.consistent(paper_setup.PAPER, VIRTUAL),
            settings=paper_setup.settings(stream.seconds / SLOTS, sources=sources),
        )
        for stream in paper_setup.both(scale)
        for workers in paper_setup.WORKERS
        for sources in counts
    ]


def claims(results: Results) -> list[Claim]:
    """Much the same for any number of sources."""
    made = []
    for dataset in ("wp", "zf"):
        memory = results.totals("memory", dataset=dataset).pivot_table(
            index="sources", columns="workers", values="value"
        )
        imbalance = results.totals("imbalance", dataset=dataset).pivot_table(
            index="sources", columns="workers", values="value"
        )
        factor = (memory.max() / memory.min()).max()
        most = memory.index.max()
        made.append(
            Claim(
                f"{dataset}: imbalance and memory stay almost the same on a log scale, whatever "
                "the number of sources and workers",
                "Q3, sources",
                f"memory with 1 source {paper_setup.listed(memory.loc[1], '.2f')}, with {most} "
                f"{paper_setup.listed(memory.loc[most], '.2f')} (by workers); imbalance with 1 "
                f"source {paper_setup.listed(imbalance.loc[1])}, with {most} "
                f"{paper_setup.listed(imbalance.loc[most])}",
                bool(
                    factor < 3.2 and imbalance.max().max() < 3.2 * max(0.01, imbalance.min().min())
                ),
                why="Judged by half a decade. Each source fills bins by its own counts, so that "
                "a key has other overflow bins at each of them: memory grows with the sources."
                " With many sources a worker's share is off by more than epsilon: each source "
                "moves virtual workers on its own.",
            )
        )
    return made


EXPERIMENT = Experiment(
    name="sources",
    title="Many sources",
    said="Imbalance and memory remain almost the same on a log scale when the number of sources "
    "and of workers grows.",
    configurations=configurations,
    panels=tuple(
        Panel(metric, "workers", label, "workers", dataset, kind="bars", lines="sources",
              log="y", where={"dataset": dataset})
        for dataset in ("wp", "zf")
        for metric, label in (("imbalance", "imbalance"), ("memory", "memory, per key"))
    ),
    claims=claims,
    columns=2,
)  # fmt: skip
