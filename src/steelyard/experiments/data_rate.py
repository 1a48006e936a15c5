"""Messages per hour of the streams, compared with the paper's table of data sets."""

import math
from typing import Any

import numpy as np

from steelyard import datasets
from steelyard._compiled import compiled
from steelyard.datasets import Dataset
from steelyard.experiments.configuration import Configuration, MetricValue
from steelyard.experiments.experiment import Experiment, Panel, Scale
from steelyard.experiments.results import Claim, Results

HOUR = 3600.0
_SAID = {"wp": (22e6, 2.9e6, 0.0932), "tw": (1.2e9, 31e6, 0.0267)}


def configurations(scale: Scale) -> list[Configuration]:
    """Return a configuration for each stream."""
    return [
        Configuration(
            "data-rate",
            scheme="none",
            stream=datasets.named(name, fraction=scale.fraction),
            without_simulation=count,
        )
        for name in ("wp", "wp-steep", "tw")
    ]


def count(configuration: Configuration) -> list[MetricValue]:
    """Count the messages per hour, the different keys and the share of the hottest key."""
    stream = configuration.stream
    assert isinstance(stream, Dataset)
    hours = np.zeros(math.ceil(stream.seconds / HOUR), np.int64)
    seen = np.zeros((stream.keys >> 3) + 1, np.uint8)
    hottest = different = 0
    for chunk in stream.chunks():
        hours += np.bincount((chunk.times / HOUR).astype(np.int64), minlength=hours.size)
        hottest += int(np.count_nonzero(chunk.keys == 0))
        different += int(_count_new(chunk.keys, seen))
    return [
        MetricValue("messages", stream.messages),
        MetricValue("keys", different),
        MetricValue("p1", hottest / stream.messages),
        *(
            MetricValue("messages_per_hour", float(n), (hour + 1) * HOUR)
            for hour, n in enumerate(hours)
        ),
    ]


@compiled
def _count_new(keys: Any, seen: Any) -> Any:
    """Mark keys in a bit map; return the number of keys that were not marked."""
    new = 0
    for i in range(keys.size):
        at, bit = keys[i] >> np.uint32(3), np.uint8(1) << np.uint8(keys[i] & np.uint32(7))
        if seen[at] & bit == 0:
            seen[at] |= bit
            new += 1
    return new


def claims(results: Results) -> list[Claim]:
    """Compare the streams with the paper's table of data sets."""
    made = []
    for name, (messages, keys, p1) in _SAID.items():
        own = {m: results.value(m, dataset=name) for m in ("messages", "keys", "p1")}
        is_full = own["messages"] == messages
        made.append(
            Claim(
                f"{name}: {messages / 1e6:,.0f} M messages, {keys / 1e6:g} M keys, p1 {p1:.2%}",
                "Datasets",
                f"{own['messages'] / 1e6:,.2f} M messages, {own['keys'] / 1e6:.3g} M keys, "
                f"p1 {own['p1']:.2%}",
                abs(own["keys"] / keys - 1) < 0.01 and abs(own["p1"] / p1 - 1) < 0.01
                if is_full
                else None,
                why="The stream is generated to have these numbers; the distribution of its other "
                "keys and its hourly rates are our choices."
                + ("" if is_full else " A fraction of the stream has fewer keys."),
            )
        )
    return made


EXPERIMENT = Experiment(
    name="data-rate",
    title="Messages per hour",
    said="The rates of the streams change over the day. The Wikipedia day has 22 million messages, "
    "the Twitter month 1.2 billion.",
    configurations=configurations,
    panels=(
        Panel(
            "messages_per_hour", "time", "messages per hour", "hours", "wp", where={"dataset": "wp"}
        ),
        Panel(
            "messages_per_hour", "time", "messages per hour", "hours", "tw", where={"dataset": "tw"}
        ),
    ),
    claims=claims,
    columns=2,
)
