"""Imbalance and memory of every scheme over the skew of the keys."""

import numpy as np
import pandas as pd

from steelyard import schemes
from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, memory_bounds
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results
from steelyard.schemes import Scheme
from steelyard.simulator import Direct

BINS = (10, 100, 1000)
ALL: dict[str, Scheme] = {
    **paper_setup.SCHEMES,
    "PoRC graded": schemes.GradedChoices(paper_setup.EPSILON),
    "D-Choices": schemes.DChoices(),
    "W-Choices": schemes.WChoices(),
}


def configurations(scale: Scale) -> list[Configuration]:
    """Return a configuration for every scheme, skew and number of bins."""
    skews = (0.2, 0.6, 1.0, 1.4, 2.0) if scale.is_small else np.arange(1, 21) / 10
    return [
        Configuration(
            "balls-and-bins",
            scheme=name,
            stream=(stream := paper_setup.zipf(scale, float(skew))),
            cluster=paper_setup.cluster(stream, bins),
            grouping=Direct(scheme),
            measure=memory_bounds,
        )
        for skew in skews
        for bins in BINS
        for name, scheme in ALL.items()
    ]


def claims(results: Results) -> list[Claim]:
    """Test the bounds of the paper's analysis on every skew and number of bins."""
    bounded = {name: paper_setup.excess_over_epsilon(results, name) for name in ("PoRC", "CH")}
    loose = {name: _least_excess(results, name) for name in ("KG", "PKG")}
    potc = results.totals("imbalance", scheme="PoTC")
    messages = results.totals("messages", scheme="PoTC")["value"].to_numpy()
    potc_messages = float((potc["value"] * messages / potc["workers"]).max())
    pkg = results.totals("imbalance", scheme="PKG")
    is_light = results.totals("p1", scheme="PKG")["value"].to_numpy() * pkg["workers"] <= 0.2
    light = float((pkg["value"] * messages / pkg["workers"])[is_light].max())
    memory = {s: results.totals("memory", scheme=s)["value"] for s in ("KG", "PKG")}
    porc = _ratio(results, "PoRC", "memory_lower_bound")
    sg = _ratio(results, "SG", "memory_upper_bound")
    return [
        Claim(
            "The imbalance of PoRC is at most epsilon times the mean load",
            "Analysis",
            f"largest imbalance minus epsilon, over all skews and numbers of bins: PoRC "
            f"{bounded['PoRC']:+.1e}, CH {bounded['CH']:+.1e}",
            max(bounded.values()) <= 1e-9,
            why="The test allows one message above the bound in a bin.",
        ),
        Claim(
            "The imbalance of KG and PKG grows with the share p1 of the hottest key and the number "
            "n of workers: it is at least n p1 - 1 and n p1 / 2 - 1",
            "Analysis",
            f"smallest imbalance minus the bound: KG {loose['KG']:+.1e}, PKG {loose['PKG']:+.1e}",
            min(loose.values()) >= -1e-9,
        ),
        Claim(
            "PKG is balanced up to O(ln ln n) messages if the hottest key has at most 1 / (5 n) of "
            "the messages",
            "Analysis",
            f"in {int(is_light.sum())} such cases the largest bin is at most {light:.1f} messages "
            "above the mean",
            light <= 20,
        ),
        Claim(
            "KG has the least memory, one worker per key; PKG has at most two workers per key",
            "Analysis, memory",
            f"memory KG {memory['KG'].max():.2f}, PKG {memory['PKG'].min():.2f} to "
            f"{memory['PKG'].max():.2f}",
            bool(memory["KG"].max() == 1 and memory["PKG"].max() <= 2),
        ),
        Claim(
            "The imbalance of PoTC is a few messages, O(ln ln n)",
            "Analysis",
            f"the largest bin is at most {potc_messages:.1f} messages above the mean",
            bool(potc_messages <= 10),
        ),
        Claim(
            "A key of share p needs at least ceil(p n / (1 + epsilon)) bins, which is a lower "
            "bound of the memory of PoRC",
            "Analysis, memory",
            f"memory / bound: smallest {porc.min():.2f}, median {porc.median():.2f}, largest "
            f"{porc.max():.2f}",
            bool(porc.min() >= 0.98),
            why="The bound is not tight, because full bins also make light keys overflow.",
        ),
        Claim(
            "The memory of SG is at most the sum of min(ceil(p m), n) over the keys",
            "Analysis, memory",
            f"largest memory / bound: {sg.max():.3f}",
            bool(sg.max() <= 1.05),
            why="A rare key may occur more often than its expected number of times, p m.",
        ),
    ]


def _least_excess(results: Results, scheme: str) -> float:
    """Return the smallest difference between the imbalance and its lower bound."""
    choices = {"KG": 1, "PKG": 2}[scheme]
    rows = results.totals("imbalance", scheme=scheme)
    hottest = results.totals("p1", scheme=scheme)["value"].to_numpy()
    return float((rows["value"] - (rows["workers"] * hottest / choices - 1)).min())


def _ratio(results: Results, scheme: str, bound: str) -> pd.Series:
    where = ["skew", "workers"]
    memory = results.totals("memory", scheme=scheme).set_index(where)["value"]
    return memory / results.totals(bound, scheme=scheme).set_index(where)["value"]


EXPERIMENT = Experiment(
    name="balls-and-bins",
    title="Imbalance and memory over the skew of the keys",
    said="KG and PKG send a key to one or two bins, so their imbalance grows with the skew and the "
    "number of bins. PoTC and SG are balanced but send every key to many bins. CH and PoRC stay "
    "within epsilon, and PoRC needs little more memory than KG.",
    configurations=configurations,
    panels=(
        *(
            Panel("imbalance", "skew", "imbalance", "skew z", f"{bins:,} virtual workers",
                  log="y", where={"workers": bins}, limits=(1e-7, 1e3))
            for bins in BINS
        ),
        *(
            Panel("memory", "skew", "memory, copies per key", "skew z", log="y",
                  where={"workers": bins})
            for bins in BINS
        ),
    ),
    claims=claims,
)  # fmt: skip
