"""Draw the figure of an experiment, with panels that are readable in grayscale."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import FuncFormatter

from steelyard.experiments import Experiment, Panel, Results
from steelyard.printable import printable

# Color-blind readers can distinguish the colors, which also differ in lightness. Each scheme also
# has its own dashes and marker, so each of the three is enough.
_STYLES: dict[str, tuple[str, Any, str]] = {
    "KG": ("#D55E00", (0, (5, 1.5)), "s"),
    "PKG": ("#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "PoTC": ("#999999", (0, (1, 1)), "D"),
    "CH": ("#56B4E9", (0, (6, 1, 1, 1, 1, 1)), "^"),
    "PoRC": ("#009E73", "solid", "o"),
    "SG": ("#666666", (0, (2, 2)), "x"),
    "CG": ("#0072B2", "solid", "o"),
    "CG steady": ("#000000", "solid", "P"),
    "PoRC graded": ("#000000", "solid", "P"),
    "CG over KG": ("#D55E00", (0, (5, 1.5)), "s"),
    "CG over SG": ("#666666", (0, (2, 2)), "x"),
    "CG over PoRC": ("#0072B2", "solid", "o"),
    "plans": ("#0072B2", (0, (6, 1, 1, 1)), "*"),
    "D-Choices": ("#E69F00", (0, (3, 1, 1, 1, 1, 1)), "<"),
    "W-Choices": ("#56B4E9", (0, (1, 1)), ">"),
    "PoRC graded, fading": ("#882255", (0, (8, 1)), "D"),
    "CG compared": ("#882255", (0, (8, 1)), "D"),
    "paper's rules": ("#D55E00", (0, (5, 1.5)), "s"),
    "steady rules": ("#000000", "solid", "P"),
    "paper's rules, noise": ("#E69F00", (0, (1, 1)), "v"),
    "steady rules, noise": ("#0072B2", (0, (3, 1, 1, 1)), "^"),
}
_OTHERS = (
    ("#D55E00", (0, (5, 1.5)), "s"),
    ("#E69F00", (0, (3, 1, 1, 1)), "v"),
    ("#009E73", (0, (6, 1, 1, 1, 1, 1)), "^"),
    ("#56B4E9", (0, (1, 1)), "D"),
    ("#0072B2", "solid", "o"),
    ("#000000", (0, (2, 2)), "x"),
)
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++", "oo", "--")
THEME: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "steelyard",
}


def draw(experiment: Experiment, results: Results) -> Figure:
    """Draw the figure of an experiment, without panels that have no data."""
    shown = [panel for panel in experiment.panels if not _rows(panel, results).empty]
    columns = min(experiment.columns, max(1, len(shown)))
    rows = max(1, math.ceil(len(shown) / columns))
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(3.6 * columns, 2.7 * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in zip(axes, _on_one_scale(shown, results), strict=False):
            _draw_panel(ax, panel, results)
        for ax in axes[len(shown) :]:
            ax.remove()
        # A title may contain a file name, which must not be read as a formula.
        figure.suptitle(printable(experiment.title), fontsize=11, parse_math=False)
        _legend(figure, list(axes[: len(shown)]))
    return figure


def _on_one_scale(panels: Sequence[Panel], results: Results) -> list[Panel]:
    """Give all heat maps the same limits, so that their colors are comparable."""
    heats = [panel for panel in panels if panel.kind == "heat" and panel.limits is None]
    values = [_rows(panel, results)["value"] for panel in heats]
    if not values:
        return list(panels)
    limits = (min(v.min() for v in values), max(v.max() for v in values))
    return [replace(panel, limits=limits) if panel in heats else panel for panel in panels]


def _rows(panel: Panel, results: Results) -> pd.DataFrame:
    rows = results.where(metric=panel.metric, **panel.where).table
    return rows[rows["time"].notna() if panel.x == "time" else rows["time"].isna()]


def _draw_panel(ax: Axes, panel: Panel, results: Results) -> None:
    rows = _rows(panel, results)
    {"lines": _lines, "bars": _bars, "heat": _heat}[panel.kind](ax, panel, rows)
    ax.set_xlabel(panel.x_label)
    if panel.kind != "heat":
        ax.set_ylabel(panel.label)
        if panel.log_y:
            positive = rows["value"][rows["value"] > 0]
            ax.set_yscale("log" if len(positive) else "linear")
            if len(positive) and positive.max() < 30 * _least(rows):
                plain = FuncFormatter(lambda value, _: f"{value:g}")
                ax.yaxis.set_major_formatter(plain)
                ax.yaxis.set_minor_formatter(plain if positive.max() < 5 * _least(rows) else "")
        if panel.log_x:
            ax.set_xscale("log")
        if panel.limits is not None:
            low, high = panel.limits
            ax.set_ylim(max(low, _least(rows) / 2) if panel.log_y else low,
                        min(high, rows["value"].max() * 2))  # fmt: skip
    ax.set_title(panel.title)


def _least(rows: pd.DataFrame) -> float:
    """Return the smallest value above 0 that is not a rounding error."""
    values = rows["value"]
    positive = values[values > max(values.max(), 0) * 1e-9]
    return float(positive.min()) if len(positive) else 1e-3


def _lines(ax: Axes, panel: Panel, rows: pd.DataFrame) -> None:
    for (name, own), style in _styled(panel, rows):
        color, dashes, marker = style
        points = own.groupby(panel.x, dropna=False)["value"].mean().sort_index()
        # A scheme that does not depend on x, as key grouping on epsilon, is a horizontal line.
        if points.index.isna().all():
            ax.axhline(points.iloc[0], color=color, linestyle=dashes, label=name)
            continue
        x = points.index.to_numpy(dtype=float) / (3600 if panel.x == "time" else 1)
        every = max(1, len(points) // 8)
        if panel.log_y:
            points = points.clip(lower=_least(rows) / 2)
        ax.plot(x, points, color=color, linestyle=dashes, marker=marker, label=name,
                markevery=every, fillstyle="none" if len(points) > 40 else "full")  # fmt: skip


def _bars(ax: Axes, panel: Panel, rows: pd.DataFrame) -> None:
    groups = list(_styled(panel, rows))
    places = sorted(rows[panel.x].unique())
    width = 0.8 / len(groups)
    for number, ((name, own), (color, _, _)) in enumerate(groups):
        values = own.groupby(panel.x)["value"].mean().reindex(places)
        if panel.log_y:
            values = values.clip(lower=_least(rows) / 2)
        ax.bar(np.arange(len(places)) + (number - (len(groups) - 1) / 2) * width, values, width,
               label=name, color=color, hatch=_HATCHES[number % len(_HATCHES)],
               edgecolor="white", linewidth=0.3)  # fmt: skip
    ax.set_xticks(range(len(places)), [f"{place:,}" for place in places])
    ax.grid(visible=False, axis="x")


def _heat(ax: Axes, panel: Panel, rows: pd.DataFrame) -> None:
    cells = rows["cluster"].str.extract(r"\{(\d+),(\d+)\}").astype(int)
    places = rows.assign(y=cells[0], z=cells[1])
    shape = {"index": "y", "columns": "z", "dropna": False}
    table = places.pivot_table(values="value", **shape).sort_index()
    runs = places.pivot_table(values="configuration", aggfunc="count", **shape).sort_index()
    values = table.to_numpy(dtype=float)
    low, high = panel.limits or (np.nanmin(values), np.nanmax(values))
    norm = LogNorm(max(low, 1e-3), high) if panel.log_y else Normalize(low, high)
    image = ax.imshow(values, cmap="cividis", norm=norm, origin="lower", aspect="auto")
    ax.set_xticks(range(len(table.columns)), [str(z) for z in table.columns])
    ax.set_yticks(range(len(table.index)), [str(y) for y in table.index])
    ax.set_ylabel("y, fast machines")
    ax.grid(visible=False)
    middle = norm(values)
    for (i, j), value in np.ndenumerate(values):
        was_run = runs.reindex_like(table).fillna(0).iat[i, j] > 0
        text = _short(value) if not math.isnan(value) else "never" if was_run else ""
        dark = not math.isnan(value) and middle[i, j] < 0.55
        ax.text(j, i, text, ha="center", va="center", fontsize=6,
                color="white" if dark else "black")  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label=panel.label, shrink=0.9)


def _short(value: float) -> str:
    """Format a number in few characters."""
    if value >= 10_000:
        return f"{value / 1000:.0f}k"
    if value >= 1000:
        return f"{value / 1000:.1f}k"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _styled(panel: Panel, rows: pd.DataFrame) -> "zip[Any]":
    names = rows[panel.lines].unique()
    if panel.lines == "scheme":
        known = [n for n in _STYLES if n in names]
        names = [*known, *(n for n in names if n not in known)]
    spare = cycle(_OTHERS)
    styles = [_STYLES.get(str(name)) or next(spare) for name in names]
    if len(names) == 1:
        styles = [_STYLES["CG"]]
    return zip([(str(n), rows[rows[panel.lines] == n]) for n in names], styles, strict=True)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    # The legend of a scheme has a bar and a line if panels draw it in both forms.
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            known = found.get(label, ())
            if type(handle) not in map(type, known):
                found[label] = (*known, handle)
    if len(found) > 1:
        widest = 0.55 + 0.075 * max(map(len, found))  # inches of a line and its label
        most = max(1, int(figure.get_figwidth() / widest))
        columns = math.ceil(len(found) / math.ceil(len(found) / most))
        figure.legend(
            list(found.values()),
            list(found),
            loc="outside lower center",
            ncols=columns,
            handler_map={tuple: HandlerTuple(ndivide=None)},
            handlelength=4 if any(len(handles) > 1 for handles in found.values()) else 2.5,
        )
