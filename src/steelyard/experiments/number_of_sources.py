"""Many sources, each with its own loads and its own assignment of virtual workers."""

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results

SOURCES = (1, 10, 50, 100)
VIRTUAL = 10
SLOTS = 144
"""The number of slots, each of ten minutes, so that every source gets a signal from every worker
in each slot."""


def configurations(scale: Scale) -> list[Configuration]:
    """Return a configuration for every number of sources and every number of workers."""
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
    """Test whether imbalance and memory depend on the number of sources."""
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
                f"{dataset}: imbalance and memory stay almost the same on a log scale for all "
                "numbers of sources and workers",
                "Q3, sources",
                f"memory by workers, 1 source: {paper_setup.listed(memory.loc[1], '.2f')}; {most} "
                f"sources: {paper_setup.listed(memory.loc[most], '.2f')}; imbalance by workers, 1 "
                f"source: {paper_setup.listed(imbalance.loc[1])}; {most} sources: "
                f"{paper_setup.listed(imbalance.loc[most])}",
                bool(
                    factor < 3.2 and imbalance.max().max() < 3.2 * max(0.01, imbalance.min().min())
                ),
                why="Values within half a decade count as the same. Each source fills bins by its "
                "own counts, so a key overflows to other bins at each source, and memory grows "
                "with the number of sources. Each source moves virtual workers independently, so "
                "with many sources a worker's share may differ by more than epsilon.",
            )
        )
    return made


EXPERIMENT = Experiment(
    name="sources",
    title="Many sources",
    said="Imbalance and memory remain almost the same on a log scale when the numbers of sources "
    "and of workers grow.",
    configurations=configurations,
    panels=tuple(
        Panel(metric, "workers", label, "workers", dataset, kind="bars", lines="sources",
              log="y", where={"dataset": dataset})
        for dataset in ("wp", "zf")
        for metric, label in (("imbalance", "imbalance"), ("memory", "memory, copies per key"))
    ),
    claims=claims,
    columns=2,
)  # fmt: skip
