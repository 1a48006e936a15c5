"""Imbalance and memory over epsilon: consistent grouping over KG, SG and PoRC."""

import math

from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results
from steelyard.schemes import KeyGrouping, RandomChoices, Scheme, Shuffle
from steelyard.simulator import Direct

EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
WORKERS, VIRTUAL = 10, 10
DIRECT = "PoRC on workers"
SHOWN = ["CG over KG", "CG over SG", "CG over PoRC"]


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of KG and SG, and of PoRC for every epsilon."""
    schemes: list[tuple[str, Scheme]] = [("CG over KG", KeyGrouping()), ("CG over SG", Shuffle())]
    schemes += [("CG over PoRC", RandomChoices(epsilon)) for epsilon in EPSILONS]
    made = [
        Configuration(
            "epsilon",
            scheme=name,
            stream=stream,
            cluster=paper_setup.cluster(stream, WORKERS),
            grouping=paper_setup.consistent(paper_setup.PAPER, VIRTUAL, scheme),
            settings=paper_setup.settings(paper_setup.slot(stream)),
        )
        for stream in paper_setup.both(scale)
        for name, scheme in schemes
    ]
    return made + [
        Configuration(
            "epsilon",
            scheme=DIRECT,
            stream=stream,
            cluster=paper_setup.cluster(stream, WORKERS),
            grouping=Direct(RandomChoices(epsilon)),
        )
        for stream in (*paper_setup.both(scale), paper_setup.zipf(scale, 2.0))
        for epsilon in (0.05, 0.12, 0.3, 1.0)
    ]


def claims(results: Results) -> list[Claim]:
    """Test the trade-off, and that CG lies between key grouping and shuffle grouping."""
    made = []
    for dataset in ("wp", "zf"):
        porc = {"dataset": dataset, "scheme": "CG over PoRC"}
        imbalance = results.by("epsilon", "imbalance", **porc)
        memory = results.by("epsilon", "memory", **porc)
        kg, sg = (
            results.value("memory", dataset=dataset, scheme=f"CG over {s}") for s in ("KG", "SG")
        )
        made.append(
            Claim(
                f"{dataset}: a small epsilon gives a low imbalance, a large epsilon a low memory",
                "Q1, epsilon",
                f"imbalance {imbalance.iloc[0]:.4f} to {imbalance.iloc[-1]:.2f}, memory "
                f"{memory.iloc[0]:.2f} to {memory.iloc[-1]:.2f}, for epsilon "
                f"{EPSILONS[0]} to {EPSILONS[-1]:g}",
                bool(imbalance.iloc[0] < imbalance.iloc[-1] and memory.iloc[0] > memory.iloc[-1]),
            )
        )
        made.append(
            Claim(
                f"{dataset}: the memory of CG over PoRC lies between that of CG over KG and of CG "
                "over SG",
                "Q1, epsilon",
                f"KG {kg:.2f}, PoRC {memory.min():.2f} to {memory.max():.2f}, SG {sg:.2f}",
                bool(kg * 0.98 <= memory.min() and memory.max() <= sg * 1.02),
            )
        )
    made.append(
        Claim(
            "Epsilon 0.01 is a middle ground between imbalance and memory",
            "Q1, epsilon",
            "wp, memory for epsilon 0.001, 0.01, 0.1: "
            + ", ".join(
                f"{results.by('epsilon', 'memory', dataset='wp', scheme='CG over PoRC')[e]:.2f}"
                for e in (0.001, 0.01, 0.1)
            ),
            None,
            why="This is a choice and cannot be tested.",
        )
    )
    copies = results.totals("hottest_copies", scheme=DIRECT)
    copies = copies[copies["epsilon"] > 1 / (WORKERS - 1)]
    most = copies.groupby(["dataset", "skew"], dropna=False)["value"].max()
    made.append(
        Claim(
            "With epsilon above 1 / (n - 1) no key is replicated on all n workers",
            "Analysis, memory",
            "largest number of the 10 workers that have held the hottest key, epsilon 0.12 to 1: "
            + ", ".join(
                f"{name}{'' if math.isnan(skew) else f' {skew:g}'}: {n:.0f}"
                for (name, skew), n in most.items()
            ),
            bool(most.max() < WORKERS),
            why="At no time are all other workers full. But the full workers change, so over time "
            "the hottest key may reach all workers.",
        )
    )
    return made


EXPERIMENT = Experiment(
    name="epsilon",
    title="Imbalance and memory over epsilon",
    said="Epsilon is a trade-off between imbalance and memory: CG lies between key grouping and "
    "shuffle grouping. 0.01 is a middle ground.",
    configurations=configurations,
    panels=tuple(
        Panel(metric, "epsilon", label, "epsilon", f"{dataset}, 10 workers × 10 virtual workers",
              log="xy", where={"dataset": dataset, "scheme": SHOWN})
        for dataset in ("wp", "zf")
        for metric, label in (("imbalance", "imbalance"), ("memory", "memory, copies per key"))
    ),
    claims=claims,
    columns=2,
)  # fmt: skip
