"""Figures and the page of a deployment experiment."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from steelyard.report.drawing import LOOK
from steelyard.report.rendering import as_png, as_text, rendered

if TYPE_CHECKING:
    from steelyard.deployment.grid_settings import GridSettings
    from steelyard.deployment.run_results import RunResult

NAMES = {
    "kg": "KG, n partitions",
    "kg-200": "KG, 200 partitions",
    "sg": "SG, round robin",
    "pkg": "PKG, two choices",
    "salting": "salting by hand",
    "cg-pull": "CG, pull",
    "cg-delegated": "CG, delegated",
}
_CLUSTERS = {
    "no": "workers alike",
    "sleep": "a quarter at 30 %",
    "executors": "executors paused",
    "changing": "others become slow",
}
# Colours that those who are colour-blind can tell apart, dashes and markers for everybody else.
_STYLES = {
    "kg": ("#D55E00", (0, (5, 1.5)), "s"),
    "kg-200": ("#E69F00", (0, (3, 1, 1, 1)), "D"),
    "sg": ("#666666", (0, (2, 2)), "x"),
    "pkg": ("#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "salting": ("#56B4E9", (0, (1, 1)), "^"),
    "cg-pull": ("#009E73", (0, (8, 1)), "P"),
    "cg-delegated": ("#0072B2", "solid", "o"),
}


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and how far they are apart."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: "Iterable[float | None]") -> "Spread | None":
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known)) if known else None


@dataclass(frozen=True)
class Line:
    """All repetitions of one way, at one delay, on one kind of cluster."""

    hetero: str
    data: str
    scheme: str
    delay: float
    runs: int
    throughput: Spread | None
    share: Spread | None
    """Of the limit, by the clock."""
    working: Spread | None
    """Of the limit, while workers work."""
    p50: Spread | None
    p95: Spread | None
    p99: Spread | None
    copies: Spread | None
    state_bytes: Spread | None
    imbalance: Spread | None
    """The busiest worker's busy time against the mean, less one; where workers have machines."""
    converged: Spread | None
    against_kg: Spread | None
    """Times the throughput of key grouping with the same slow workers, while workers work."""
    clock_against_kg: Spread | None
    """The same, by the clock."""
    most_against_kg: Spread | None
    """What the limit is of that: no way can do more."""

    @property
    def name(self) -> str:
        return NAMES[self.scheme]

    @property
    def cluster(self) -> str:
        return _CLUSTERS[self.hetero] + ("" if self.data == "tw" else f" ({self.data})")

    def cells(self) -> list[str]:
        """For a table on a terminal."""

        def told(spread: Spread | None, form: str) -> str:
            return "" if spread is None else format(spread.middle, form)

        working = told(self.working, ".0%")
        if self.working is not None and self.runs > 1:
            working += f" ({100 * self.working.least:.0f}-{self.working.most:.0%})"
        p99 = told(self.p99, ".1f")
        return [
            self.scheme,
            f"{self.delay:g} ms",
            told(self.throughput, ",.0f"),
            told(self.share, ".0%"),
            working,
            f"{p99} s" if p99 else "",
            told(self.against_kg, ".1f"),
            told(self.copies, ".2f"),
        ]


def summary(rows: "Sequence[RunResult]") -> list[Line]:
    """One line for all repetitions of the same thing, in the order of the clusters and ways."""
    groups: dict[tuple[str, str, str, float], list[RunResult]] = defaultdict(list)
    for row in rows:
        groups[row.hetero, row.data, row.scheme, row.delay].append(row)
    clusters, ways = list(_CLUSTERS), list(NAMES)

    def place(group: tuple[str, str, str, float]) -> tuple[int, str, float, int]:
        hetero, data, scheme, delay = group
        return (clusters.index(hetero), "" if data == "tw" else data, delay, ways.index(scheme))

    by_key = {row.run[1:]: row for row in rows if row.scheme == "kg"}

    def times(own: "Iterable[RunResult]", rate: str, of_kg: str = "working") -> Spread | None:
        """A rate of some runs against one of key grouping with the same slow workers."""
        pairs = [(getattr(row, rate), by_key.get(row.run[1:])) for row in own]
        return Spread.of(
            mine / getattr(kg, of_kg)
            for mine, kg in pairs
            if mine is not None and kg is not None and getattr(kg, of_kg)
        )

    lines = []
    for group in sorted(groups, key=place):
        own = groups[group]
        fast = [row for row in own if row.offered is None]
        lines.append(
            Line(
                *group,
                runs=len(fast),
                throughput=Spread.of(row.throughput for row in fast),
                share=Spread.of(row.share for row in fast),
                working=Spread.of(row.working_share for row in fast),
                p50=Spread.of(row.p50 for row in own),
                p95=Spread.of(row.p95 for row in own),
                p99=Spread.of(row.p99 for row in own),
                copies=Spread.of(row.copies for row in fast),
                state_bytes=Spread.of(row.state_bytes for row in fast),
                imbalance=Spread.of(row.imbalance for row in fast),
                converged=Spread.of(row.converged for row in fast),
                against_kg=times(fast, "working"),
                clock_against_kg=times(fast, "throughput", "throughput"),
                most_against_kg=times(fast, "limit"),
            )
        )
    return lines


def write_report(lines: Sequence[Line], setting: "GridSettings", folder: Path) -> None:
    """Figures as PNG and SVG, and report.html with all of them."""
    figures = {
        "share": share_figure(lines),
        "throughput": throughput_figure(lines),
        "latency": latency_figure(lines),
        "latency-delays": latency_over_delay_figure(lines),
    }
    if (folder / "series.csv").exists():
        figures["changing"] = changing_figure(folder)
    pictures = {}
    for name, figure in figures.items():
        if figure is None:
            continue
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        picture = as_png(figure)
        (folder / f"{name}.png").write_bytes(picture)
        pictures[name] = as_text(picture)
    page = rendered("deployment.html", lines=lines, setting=setting, pictures=pictures)
    (folder / "report.html").write_text(page, "utf-8")


def share_figure(lines: Sequence[Line]) -> Figure | None:
    """The part of the limit that each way reaches at the longest delay."""
    longest = max((line.delay for line in lines), default=0.0)
    told = [line for line in lines if (line.data, line.delay) == ("tw", longest) and line.share]
    kinds = [kind for kind in ("no", "sleep", "executors") if any(x.hetero == kind for x in told)]
    if not kinds:
        return None
    ways = [way for way in reversed(NAMES) if any(line.scheme == way for line in told)]
    with mpl.rc_context(LOOK):
        size = (2.6 + 3.4 * len(kinds), 0.4 * len(ways) + 1.5)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(1, len(kinds), squeeze=False, sharey=True)[0]
        for axes, kind in zip(panels, kinds, strict=True):
            for line in told:
                if line.hetero == kind:
                    _share(axes, ways.index(line.scheme), line)
            axes.set(title=_CLUSTERS[kind], xlim=(0, 1.36), xlabel="part of the limit")
            axes.xaxis.set_major_formatter(PercentFormatter(1))
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
            axes.axvline(1, color="#888", linestyle=":")
            axes.grid(axis="y", visible=False)
        panels[0].set_yticks(range(len(ways)), [NAMES[way] for way in ways])
        keys = [
            Line2D([], [], color="#444", marker="o", label="while workers work (and the range)"),
            Line2D(
                [],
                [],
                color="#444",
                marker="o",
                fillstyle="none",
                linestyle="",
                label="by the clock",
            ),
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=2)
    return figure


def _share(axes: Axes, place: int, line: Line) -> None:
    colour = _STYLES[line.scheme][0]
    assert line.share is not None
    axes.plot(line.share.middle, place, marker="o", fillstyle="none", color=colour)
    if line.working is None:
        return
    axes.plot([line.working.least, line.working.most], [place, place], color=colour, linewidth=3)
    axes.plot(line.working.middle, place, marker="o", color=colour)
    told = f"{line.working.middle:.0%} ({line.share.middle:.0%})"
    axes.text(1.03, place, told, va="center")


def throughput_figure(lines: Sequence[Line]) -> Figure | None:
    """Messages a second over the delay, beside the limit; as the paper's figures have it."""
    kinds = [
        kind
        for kind in ("no", "sleep")
        if len({line.delay for line in lines if line.hetero == kind and line.throughput}) > 1
    ]
    if not kinds:
        return None
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(max(8, 5.4 * len(kinds)), 4.4), layout="constrained")
        for axes, kind in zip(figure.subplots(1, len(kinds), squeeze=False)[0], kinds, strict=True):
            own = [line for line in lines if line.hetero == kind and line.data == "tw"]
            _over_delay(axes, own)
            axes.set_title(_CLUSTERS[kind])
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def _over_delay(axes: Axes, lines: Sequence[Line]) -> None:
    limits = {}
    for scheme, (colour, dashes, marker) in _STYLES.items():
        own = [line for line in lines if line.scheme == scheme and line.throughput and line.share]
        if not own:
            continue
        middles = [line.throughput.middle for line in own if line.throughput]
        below = [line.throughput.middle - line.throughput.least for line in own if line.throughput]
        above = [line.throughput.most - line.throughput.middle for line in own if line.throughput]
        axes.errorbar(
            [line.delay for line in own],
            middles,
            [below, above],
            color=colour,
            linestyle=dashes,
            marker=marker,
            capsize=2,
            label=NAMES[scheme],
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
        label="the limit",
    )
    axes.set(xlabel="delay (ms)", ylabel="messages a second", xscale="log", yscale="log")
    axes.set_xticks(delays, [f"{delay:g}" for delay in delays])
    axes.minorticks_off()


def latency_figure(lines: Sequence[Line]) -> Figure | None:
    """Median, 95th and 99th percentile of each way, at what key grouping can just do."""
    longest = max((line.delay for line in lines), default=0.0)
    own = [line for line in lines if line.p99 is not None and line.delay == longest]
    if not own:
        return None
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(8, 0.55 * len(own) + 1.4), layout="constrained")
        axes = figure.subplots()
        for place, line in enumerate(reversed(own)):
            colour, _, marker = _STYLES[line.scheme]
            assert line.p50 is not None
            assert line.p95 is not None
            assert line.p99 is not None
            axes.plot([line.p50.middle, line.p99.middle], [place, place], color=colour, linewidth=3)
            for spread, size in ((line.p50, 7), (line.p95, 5), (line.p99, 9)):
                axes.plot(spread.middle, place, marker=marker, color=colour, markersize=size)
            axes.annotate(
                f"{line.p99.middle:.1f} s",
                (line.p99.middle, place),
                xytext=(9, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(own)), [line.name for line in reversed(own)])
        axes.set(xlabel="seconds from Kafka until counted: median, 95th, 99th percentile")
        axes.set_xlim(0, 1.12 * max(line.p99.most for line in own if line.p99))
        axes.set_title("at 80 % of what key grouping can do, a quarter of the workers at 30 %")
    return figure


def latency_over_delay_figure(lines: Sequence[Line]) -> Figure | None:
    """Median and 99th percentile over the delay, as the paper's figure has it."""
    own = [line for line in lines if line.p50 is not None and line.p99 is not None]
    delays = sorted({line.delay for line in own})
    if len(delays) < 2:
        return None
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(10.8, 4.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, title in zip(panels, ("median", "99th percentile"), strict=True):
            for scheme, (colour, dashes, marker) in _STYLES.items():
                points = [
                    (line.delay, (line.p50 if title == "median" else line.p99).middle)
                    for line in own
                    if line.scheme == scheme and line.p50 and line.p99
                ]
                if points:
                    look = {"color": colour, "linestyle": dashes, "marker": marker}
                    axes.plot(*zip(*points, strict=True), label=NAMES[scheme], **look)
            axes.set(title=title, xlabel="delay (ms)", xscale="log")
            axes.set_xticks(delays, [f"{delay:g}" for delay in delays])
            axes.minorticks_off()
        panels[0].set(ylabel="seconds from Kafka until counted", ylim=(0, None))
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def changing_figure(folder: Path) -> Figure:
    """The share of the limit over slots, while other workers become slow."""
    from steelyard.deployment.grid_settings import CHANGE
    from steelyard.deployment.run_results import SlotSeries

    series: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in SlotSeries(folder).rows():
        series[row["scheme"]].append((int(row["slot"]), float(row["of_limit_at_work"])))
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(8, 3.8), layout="constrained")
        axes = figure.subplots()
        for scheme, points in series.items():
            colour, dashes, marker = _STYLES[scheme]
            slots, shares = zip(*points, strict=True)
            axes.plot(
                slots, shares, color=colour, linestyle=dashes, marker=marker, label=NAMES[scheme]
            )
        axes.axvline(CHANGE + 0.5, color="#999", linestyle=":")
        axes.annotate("others become slow", (CHANGE + 0.6, 0.03), color="#666")
        axes.set(xlabel="slot", ylabel="part of all workers' capacity", ylim=(0, 1.05))
        axes.legend(loc="lower right")
    return figure
