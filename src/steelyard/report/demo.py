"""The page of the demo: throughput and busy times under two strategies."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from steelyard.report.rendering import as_png, as_text, rendered

if TYPE_CHECKING:
    from steelyard.deployment.demo import DemoRun

_COLORS = ("#b04a00", "#00664a")
"""Colors that color-blind readers can distinguish."""


def demo_page(runs: "Sequence[DemoRun]", keys: float) -> str:
    """Return the page as one HTML document with an embedded figure."""
    return rendered(
        "demo.html",
        runs=runs,
        keys=keys,
        setting=runs[0].setting,
        hot=runs[0].slots[-1].hot_keys[:5],
        picture=as_text(as_png(demo_figure(runs))),
    )


def demo_figure(runs: "Sequence[DemoRun]") -> Figure:
    """Draw the throughput over the slots, and the busy time of each worker in the last slot."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    over_time, at_end = figure.subplots(1, 2)
    setting = runs[0].setting
    for run, color in zip(runs, _COLORS, strict=False):
        rates = [slot.messages / slot.seconds / 1000 for slot in run.slots]
        over_time.plot(range(1, len(rates) + 1), rates, "o-", color=color, label=run.name)
    over_time.axhline(setting.limit / 1000, color="#888", linestyle=":", label="total capacity")
    over_time.set(xlabel="slot", ylabel="thousand messages/s", ylim=(0, None))
    over_time.legend(frameon=False)
    width = 0.8 / len(runs)
    for number, (run, color) in enumerate(zip(runs, _COLORS, strict=False)):
        last = run.slots[-1]
        busy = [worker.utilization * last.seconds for worker in last.workers]
        places = [worker.worker + (number - 0.5) * width for worker in last.workers]
        at_end.bar(places, busy, width, color=color, label=run.name)
    at_end.axhline(
        setting.messages / setting.limit, color="#888", linestyle=":", label="ideal distribution"
    )
    slow_from = setting.workers - setting.slow
    labels = [f"{w}\nslow" if w >= slow_from else str(w) for w in range(setting.workers)]
    at_end.set_xticks(range(setting.workers), labels)
    at_end.set(xlabel="worker", ylabel="busy time in the last slot (s)")
    at_end.legend(frameon=False)
    for axes in (over_time, at_end):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
