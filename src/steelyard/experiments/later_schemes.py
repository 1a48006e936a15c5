"""Schemes that the paper does not have: D-Choices, W-Choices, graded PoRC and plans."""

from steelyard import schemes
from steelyard.datasets import Dataset
from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results
from steelyard.schemes import Scheme
from steelyard.simulator import Direct, Plans

BINS = (10, 100, 1000)
SKEWS = (0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0)
SLOTS = 100
"""The number of slots; a plan is made at the end of each."""

SHOWN: dict[str, Scheme | Plans] = {
    "PoRC": schemes.RandomChoices(paper_setup.EPSILON),
    "PoRC graded": schemes.GradedChoices(paper_setup.EPSILON),
    "plans": Plans(paper_setup.EPSILON, decay=paper_setup.DECAY),
    "D-Choices": schemes.DChoices(),
    "W-Choices": schemes.WChoices(),
    "PKG": schemes.PartialKey(),
}


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of every scheme on Zipf streams and on the Wikipedia day."""
    skews = (0.6, 1.0, 1.4, 2.0) if scale.is_small else SKEWS
    streams: list[Dataset] = [paper_setup.zipf(scale, skew) for skew in skews]
    streams.append(paper_setup.wikipedia(scale).steady())
    return [
        Configuration(
            "later-schemes",
            scheme=name,
            stream=stream,
            cluster=paper_setup.cluster(stream, bins),
            grouping=Direct(scheme),
            settings=paper_setup.settings(stream.seconds / (30 if scale.is_small else SLOTS)),
        )
        for stream in streams
        for bins in BINS
        for name, scheme in SHOWN.items()
    ]


def claims(results: Results) -> list[Claim]:
    """Test that graded PoRC and plans need less memory than PoRC."""
    made = []
    for dataset in ("zf", "wp"):
        memory = results.totals("memory", dataset=dataset).pivot_table(
            index=["workers", "skew"] if dataset == "zf" else ["workers"],
            columns="scheme",
            values="value",
        )
        imbalance = results.totals("imbalance", dataset=dataset).groupby("scheme")["value"].max()
        excess = paper_setup.excess_over_epsilon(results, "PoRC graded", dataset=dataset)
        graded, plans = memory["PoRC graded"] / memory["PoRC"], memory["plans"] / memory["PoRC"]
        made += [
            Claim(
                f"{dataset}: graded PoRC needs less memory than PoRC, within the same epsilon",
                "Later schemes",
                f"memory relative to PoRC: median {graded.median():.2f}, smallest "
                f"{graded.min():.2f}, largest {graded.max():.2f}; imbalance at most "
                f"{imbalance['PoRC graded']:.4f}",
                bool(graded.median() < 0.9 and excess <= 1e-9),
                ours=True,
            ),
            Claim(
                f"{dataset}: plans need less memory than PoRC, but are one slot late",
                "Later schemes",
                f"memory relative to PoRC: median {plans.median():.2f}, largest "
                f"{plans.max():.2f}; imbalance at most {imbalance['plans']:.3f}",
                bool(plans.median() < 0.9),
                why="There is no plan in the first slot, and a plan uses the counts of earlier "
                "slots only. It cannot foresee random variation, which is larger with more bins.",
                ours=True,
            ),
            Claim(
                f"{dataset}: D-Choices and W-Choices are balanced too, but without a bound",
                "Later schemes",
                f"largest imbalance: D {imbalance['D-Choices']:.2g}, W "
                f"{imbalance['W-Choices']:.2g}; largest memory: D "
                f"{memory['D-Choices'].max():.2f}, W {memory['W-Choices'].max():.2f}, PoRC "
                f"{memory['PoRC'].max():.2f}",
                None,
                why="They send light keys to two bins and hot keys to many bins.",
                ours=True,
            ),
        ]
    return made


EXPERIMENT = Experiment(
    name="later-schemes",
    title="Later schemes",
    said="Not in the paper: newer schemes and our own, compared with the paper's PoRC.",
    configurations=configurations,
    panels=(
        *(
            Panel("memory", "skew", "memory, copies per key", "skew z", f"{bins:,} bins", log="y",
                  where={"workers": bins, "dataset": "zf"})
            for bins in BINS
        ),
        *(
            Panel("imbalance", "skew", "imbalance", "skew z", log="y", limits=(1e-5, 1e3),
                  where={"workers": bins, "dataset": "zf"})
            for bins in BINS
        ),
    ),
    claims=claims,
)  # fmt: skip
