"""Hot keys that change: which schemes follow them."""

import math
from dataclasses import replace

import numpy as np

from steelyard import datasets, schemes
from steelyard.experiments import paper_setup
from steelyard.experiments.configuration import Configuration, MetricValue
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.input_streams import FileStream, InputStream
from steelyard.experiments.results import Claim, Results
from steelyard.schemes import Scheme
from steelyard.simulator import Cluster, Direct, Outcome, Plans

WORKERS = 100
ERAS = 10
"""The number of eras: other keys are hot in each tenth of the stream."""
TICKS = 200
_REDDIT = "reddit_domains.parquet"

EPSILON = 0.1
DECAYING = "PoRC graded, fading"
SHOWN: dict[str, Scheme | Plans] = {
    "KG": schemes.KeyGrouping(),
    "PKG": schemes.PartialKey(),
    "PoRC": schemes.RandomChoices(EPSILON),
    "PoRC graded": schemes.GradedChoices(EPSILON),
    DECAYING: schemes.GradedChoices(EPSILON, half_life=int(10 * WORKERS / EPSILON)),
    "plans": Plans(EPSILON, decay=paper_setup.DECAY),
    "SG": schemes.Shuffle(),
}


def configurations(scale: Scale) -> list[Configuration]:
    """Return configurations of a Zipf stream with drift, and of reddit posts if available."""
    drifting = datasets.named("zf", skew=1.0, fraction=scale.fraction)
    streams: list[InputStream] = [
        datasets.named(
            "zf", skew=1.0, fraction=scale.fraction, drift=math.ceil(drifting.messages / ERAS)
        )
    ]
    if scale.data is not None and (scale.data / _REDDIT).exists():
        part = max(200_000, int(2_260_510 * scale.fraction))
        whole = FileStream.of(scale.data / _REDDIT, "parquet", key="key", most=part)
        streams.append(replace(whole, name="reddit"))
    return [
        Configuration(
            "drift",
            scheme=name,
            stream=stream,
            cluster=Cluster.machines(
                WORKERS, total=stream.messages / stream.seconds / paper_setup.LOAD
            ),
            grouping=Direct(scheme),
            settings=paper_setup.settings(stream.seconds / TICKS),
            measure=recent_imbalance,
        )
        for stream in streams
        for name, scheme in SHOWN.items()
    ]


def recent_imbalance(_: Configuration, outcome: Outcome) -> list[MetricValue]:
    """Return the imbalance of the arrivals in each tick, and its 90th percentile."""
    arrivals = outcome.tally.arrivals[:-1]
    recent = arrivals.max(axis=1) / arrivals.mean(axis=1) - 1
    high = float(np.quantile(recent[recent.size // ERAS :], 0.9))
    return [
        MetricValue("recent_imbalance_p90", high),
        *(
            MetricValue("recent_imbalance", float(value), float(time))
            for time, value in zip(outcome.times, recent, strict=True)
        ),
    ]


def claims(results: Results) -> list[Claim]:
    """Test that a scheme with decaying loads follows hot keys better than lifetime loads."""
    made = []
    for dataset in results.table["dataset"].unique():
        recent = {
            s: results.value("recent_imbalance_p90", dataset=dataset, scheme=s) for s in SHOWN
        }
        memory = {s: results.value("memory", dataset=dataset, scheme=s) for s in SHOWN}
        made.append(
            Claim(
                f"{dataset}: a scheme with decaying loads follows hot keys that change, a scheme "
                "with lifetime loads does not",
                "Drift",
                "90th percentile of the imbalance over recent messages: "
                + ", ".join(f"{s} {v:.2f}" for s, v in recent.items())
                + "; memory: "
                + ", ".join(f"{s} {v:.2f}" for s, v in memory.items()),
                recent[DECAYING] < recent["PoRC"] and recent[DECAYING] < recent["PoRC graded"],
                why="Lifetime loads leave room in bins whose keys are no longer hot, and new hot "
                "keys may fill it all at once. Halving the loads prevents that. Plans are one slot "
                "late.",
                ours=True,
            )
        )
    return made


EXPERIMENT = Experiment(
    name="drift",
    title="Hot keys that change",
    said="Not in the paper: the balance of the most recent messages when other keys become hot.",
    configurations=configurations,
    panels=(
        Panel("recent_imbalance", "time", "imbalance of recent messages", "hours",
              "zf 1.0, other hot keys in each tenth", log="y", where={"dataset": "zf"}),
        Panel("recent_imbalance", "time", "imbalance of recent messages", "stream",
              "domains of reddit posts", log="y", where={"dataset": "reddit"}),
    ),
    claims=claims,
    columns=2,
)  # fmt: skip
