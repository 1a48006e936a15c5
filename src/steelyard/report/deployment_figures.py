"""Draw the figures of a deployment experiment.

Rows of the summary enter; figures leave, or None if there is nothing to draw.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from steelyard.deployment.deployed_strategies import STRATEGIES, strategy_named
from steelyard.report.deployment_styles import CLUSTERS, STYLES
from steelyard.report.deployment_summary import SummaryRow
from steelyard.report.drawing import THEME


def share_figure(lines: Sequence[SummaryRow]) -> Figure | None:
    """Draw the efficiency of each strategy at the longest delay."""
    longest = max((line.delay for line in lines), default=0.0)
    shown = [line for line in lines if (line.data, line.delay) == ("tw", longest) and line.share]
    kinds = [kind for kind in ("no", "sleep", "executors") if any(x.hetero == kind for x in shown)]
    if not kinds:
        return None
    used = {line.scheme for line in shown}
    schemes = [strategy.name for strategy in reversed(STRATEGIES) if strategy.name in used]
    with mpl.rc_context(THEME):
        size = (2.6 + 3.4 * len(kinds), 0.4 * len(schemes) + 1.5)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, kind in zip(panels, kinds, strict=True):
            for line in shown:
                if line.hetero == kind:
                    _share(axes, schemes.index(line.scheme), line)
            axes.set(title=CLUSTERS[kind], xlim=(0, 1.36), xlabel="efficiency")
            axes.xaxis.set_major_formatter(PercentFormatter(1))
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
            axes.axvline(1, color="#888", linestyle=":")
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(schemes)), [strategy_named(name).label for name in schemes])
        keys = [
            Line2D([], [], color="#444", marker="o", label="processing time (median and range)"),
            Line2D(
                [],
                [],
                color="#444",
                marker="o",
                fillstyle="none",
                linestyle="",
                label="wall-clock time",
            ),
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=2)
    return figure


def _share(axes: Axes, place: int, line: SummaryRow) -> None:
    color = STYLES[line.scheme].color
    assert line.share is not None
    axes.plot(line.share.middle, place, marker="o", fillstyle="none", color=color)
    if line.working is None:
        return
    axes.plot([line.working.least, line.working.most], [place, place], color=color, linewidth=3)
    axes.plot(line.working.middle, place, marker="o", color=color)
    shares = f"{line.working.middle:.0%} ({line.share.middle:.0%})"
    axes.text(1.03, place, shares, va="center")


def throughput_figure(lines: Sequence[SummaryRow]) -> Figure | None:
    """Draw the throughput and the total capacity over the delay, as the paper does."""
    kinds = [
        kind
        for kind in ("no", "sleep")
        if len({line.delay for line in lines if line.hetero == kind and line.throughput}) > 1
    ]
    if not kinds:
        return None
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(max(8, 5.4 * len(kinds)), 4.4), layout="constrained")
        for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
            own = [line for line in lines if line.hetero == kind and line.data == "tw"]
            _over_delay(axes, own)
            axes.set_title(CLUSTERS[kind])
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _over_delay(axes: Axes, lines: Sequence[SummaryRow]) -> None:
    limits = {}
    for strategy in STRATEGIES:
        own = [
            line
            for line in lines
            if line.scheme == strategy.name and line.throughput and line.share
        ]
        if not own:
            continue
        middles = [line.throughput.middle for line in own if line.throughput]
        below = [line.throughput.middle - line.throughput.least for line in own if line.throughput]
        above = [line.throughput.most - line.throughput.middle for line in own if line.throughput]
        axes.errorbar(
            [line.delay for line in own],
            middles,
            [below, above],
            **STYLES[strategy.name].line,
            capsize=2,
            label=strategy.label,
        )
        for line in own:
            assert line.throughput is not None
            assert line.share is not None
            limits[line.delay] = line.throughput.middle / line.share.middle
    delays = sorted(limits)
    axes.plot(
        delays,
        [limits[d] for d in delays],
        color="#888",
        linestyle=":",
        marker="_",
        label="total capacity",
    )
    axes.set(xlabel="delay (ms)", ylabel="messages/s", xscale="log", yscale="log")
    axes.set_xticks(delays, [f"{delay:g}" for delay in delays])
    axes.minorticks_off()


def latency_figure(lines: Sequence[SummaryRow]) -> Figure | None:
    """Draw the latencies of each strategy at a rate that key grouping can just process."""
    longest = max((line.delay for line in lines), default=0.0)
    own = [line for line in lines if line.p99 is not None and line.delay == longest]
    if not own:
        return None
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(8, 0.55 * len(own) + 1.4), layout="constrained")
        axes = figure.subplots()
        for place, line in enumerate(reversed(own)):
            style = STYLES[line.scheme]
            assert line.p50 is not None
            assert line.p95 is not None
            assert line.p99 is not None
            axes.plot(
                [line.p50.middle, line.p99.middle], [place, place], color=style.color, linewidth=3
            )
            for spread, size in ((line.p50, 7), (line.p95, 5), (line.p99, 9)):
                axes.plot(
                    spread.middle, place, marker=style.marker, color=style.color, markersize=size
                )
            axes.annotate(
                f"{line.p99.middle:.1f} s",
                (line.p99.middle, place),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(own)), [line.name for line in reversed(own)])
        axes.set(xlabel="latency in seconds: median, 95th and 99th percentile")
        axes.set_xlim(0, 1.12 * max(line.p99.most for line in own if line.p99))
        axes.set_title(
            "at 80 % of key grouping's throughput, a quarter of the workers at 30 % speed"
        )
    return figure


def latency_over_delay_figure(lines: Sequence[SummaryRow]) -> Figure | None:
    """Draw the median and the 99th percentile of the latency over the delay, as the paper does."""
    own = [line for line in lines if line.p50 is not None and line.p99 is not None]
    delays = sorted({line.delay for line in own})
    if len(delays) < 2:
        return None
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(10.8, 4.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, title in zip(panels, ("median", "99th percentile"), strict=True):
            for strategy in STRATEGIES:
                points = [
                    (line.delay, (line.p50 if title == "median" else line.p99).middle)
                    for line in own
                    if line.scheme == strategy.name and line.p50 and line.p99
                ]
                if points:
                    style = STYLES[strategy.name]
                    axes.plot(*zip(*points, strict=True), label=strategy.label, **style.line)
            axes.set(title=title, xlabel="delay (ms)", xscale="log")
            axes.set_xticks(delays, [f"{delay:g}" for delay in delays])
            axes.minorticks_off()
        panels[0].set(ylabel="latency in seconds", ylim=(0, None))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def changing_figure(folder: Path) -> Figure:
    """Draw the efficiency over the slots, in which other workers become slow."""
    from steelyard.deployment.grid_settings import CHANGE
    from steelyard.deployment.run_results import SlotSeries

    series: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in SlotSeries(folder).rows():
        series[row["scheme"]].append((int(row["slot"]), float(row["of_limit_at_work"])))
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(8, 3.8), layout="constrained")
        axes = figure.subplots()
        for scheme, points in series.items():
            slots, shares = zip(*points, strict=True)
            label = strategy_named(scheme).label
            axes.plot(slots, shares, label=label, **STYLES[scheme].line)
        axes.axvline(CHANGE + 0.5, color="#999", linestyle=":")
        axes.annotate("other workers become slow", (CHANGE + 0.6, 0.03), color="#666")
        axes.set(xlabel="slot", ylabel="efficiency", ylim=(0, 1.05))
        axes.legend(loc="lower right")
    return figure
