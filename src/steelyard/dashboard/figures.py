"""The figures of the page: frames enter, Bokeh figures leave.

Text in figures is drawn on a canvas, which interprets no markup. No figure contains keys.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, Literal

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    CustomJSTickFormatter,
    DataRange1d,
    FixedTicker,
    HoverTool,
    Range1d,
)
from bokeh.models.annotations import Span
from bokeh.plotting import figure

from steelyard.dashboard import theme, wording
from steelyard.dashboard.frames import Bar, ChartSeries, Frame, Timeline
from steelyard.dashboard.owners import Blocks

_HEIGHT = 380
"""Preferred height of all workers together, in pixels."""
_ROW = (16, 46)
"""Smallest and largest height of a worker, in pixels."""
_HALF, _WIDE = 560, 1150
"""Width of the blocks on a large screen, beside the bars and below them, in pixels."""
_FONT = "13px"

_SHORT_NUMBERS = """
const size = Math.abs(tick);
const short = (n) => String(Number(n.toPrecision(3)));
if (size >= 1e9) return short(tick / 1e9) + " G";
if (size >= 1e6) return short(tick / 1e6) + " M";
if (size >= 1e4) return short(tick / 1e3) + " k";
return String(Number(tick.toPrecision(6)));
"""

_PERCENT = "return Math.round(tick * 100) + ' %';"

_SECONDS = """
if (tick === 0) return "0";
for (const [size, unit] of [[3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
    if (tick >= size) return Number((tick / size).toPrecision(3)) + " " + unit;
return String(tick);
"""


class WorkersFigure:
    """The common part of figures with a row for each worker."""

    def __init__(self, name: str) -> None:
        self.rows, self.columns = Range1d(start=0.5, end=-0.5), Range1d(start=0, end=1)
        self.ticker = FixedTicker(ticks=[0])
        self.figure = _figure(name, x_range=self.columns, y_range=self.rows)
        self.figure.yaxis.ticker = self.ticker
        self.figure.yaxis.major_tick_line_color = None
        self.figure.yaxis.axis_line_color = None
        self.figure.ygrid.visible = False
        self.workers = 0
        self.row = float(_ROW[1])

    def fit(self, workers: int) -> None:
        """Set the height for a number of workers."""
        if workers != self.workers:
            self.workers = workers
            self.row = min(_ROW[1], max(_ROW[0], _HEIGHT / max(1, workers)))
            self.rows.start = workers - 0.5
            self.ticker.ticks = list(range(workers))
            self.figure.frame_height = round(self.row * workers)


class BarsFigure(WorkersFigure):
    """A bar for each worker, with an outline of its capacity."""

    def __init__(self, number: int) -> None:
        super().__init__(f"bars_{number}")
        self.figure.xaxis.axis_label = "messages in the slot"
        self.source = ColumnDataSource(_bars([]), name=f"bars_data_{number}")
        self.figure.xaxis.formatter = CustomJSTickFormatter(code=_SHORT_NUMBERS)
        drawn = self.figure.hbar(
            y="worker",
            right="messages",
            height=0.56,
            fill_color="color",
            fill_alpha="fill",
            line_color="color",
            hatch_pattern="hatch",
            hatch_color="#ffffff",
            hatch_alpha=0.45,
            hatch_scale=9,
            source=self.source,
        )
        self.figure.hbar(
            y="worker",
            right="capacity",
            height=0.82,
            fill_color=None,
            line_color=theme.INK,
            line_width=2,
            source=self.source,
            name="outline",
        )
        self.figure.text(
            x="end",
            y="worker",
            text="label",
            x_offset=8,
            text_baseline="middle",
            text_font_size=_FONT,
            text_color=theme.INK,
            source=self.source,
            name="text",
        )
        self.figure.add_tools(_hover("@tooltip", drawn))

    def show(self, frame: Frame, widest: float) -> None:
        """Draw a slot."""
        self.fit(len(frame.bars))
        end = 1.2 * widest or 1.0
        self.columns.end = end
        self.source.data = _bars(frame.bars)
        self.figure.yaxis.major_label_overrides = {
            bar.worker: f"{bar.state} {bar.worker}" for bar in frame.bars
        }


def _bars(bars: Sequence[Bar]) -> dict[str, Any]:
    styles = [theme.STATES.get(bar.state, theme.STATES["normal"]) for bar in bars]
    return {
        "worker": [bar.worker for bar in bars],
        "state": [bar.state for bar in bars],
        "share": [bar.share for bar in bars],
        "messages": [bar.messages for bar in bars],
        "capacity": [np.nan if bar.capacity is None else bar.capacity for bar in bars],
        "end": [max(bar.messages, bar.capacity or 0.0) for bar in bars],
        "label": [wording.percent(bar.share) for bar in bars],
        "color": [style.color for style in styles],
        "fill": [style.fill for style in styles],
        "hatch": [style.hatch for style in styles],
        "tooltip": [_tooltip(bar) for bar in bars],
    }


def _tooltip(bar: Bar) -> str:
    capacity = "" if bar.capacity is None else f" (capacity {wording.whole(bar.capacity)})"
    parts = [
        f"worker {bar.worker}, {bar.state}",
        f"{wording.whole(bar.messages)} messages{capacity}",
        f"utilization {wording.percent(bar.utilization)}",
        wording.many(bar.virtual_workers, "virtual worker"),
        f"backlog {wording.percent(bar.backlog / max(1, bar.messages))} of its messages",
        f"{bar.keys:,} keys",
    ]
    return " · ".join([*parts, *([f"p99 {wording.seconds(bar.p99)}"] if bar.p99 else [])])


class BlocksFigure(WorkersFigure):
    """A block for each virtual worker, in the row of its owner."""

    def __init__(self, number: int, *, is_wide: bool) -> None:
        self._pixels = _WIDE if is_wide else _HALF
        super().__init__(f"blocks_{number}")
        self.source = ColumnDataSource({name: [] for name in _BLOCK}, name=f"blocks_data_{number}")
        self.figure.xgrid.visible = False
        self.figure.xaxis.visible = False
        drawn = self.figure.rect(
            x="x",
            y="y",
            width="width",
            height="height",
            fill_color="color",
            fill_alpha="fill",
            line_color="color",
            line_width=1.2,
            hatch_pattern="hatch",
            hatch_color="#ffffff",
            hatch_alpha=0.55,
            hatch_scale=8,
            source=self.source,
        )
        self.figure.add_tools(_hover("@tooltip", drawn))

    def show(self, frame: Frame, most: int) -> None:
        """Draw a slot; `most` is the largest number of blocks of a worker in the run."""
        self.fit(len(frame.bars))
        lines = _lines(most, self.row, self._pixels)
        columns = max(ceil(most / lines), 8)
        self.columns.end = columns + 0.2
        self.source.data = _blocks(frame.blocks, lines)


_BLOCK = (
    "virtual",
    "owner",
    "x",
    "y",
    "width",
    "height",
    "kind",
    "color",
    "fill",
    "hatch",
    "tooltip",
)


def _lines(most: int, row: float, pixels: int) -> int:
    """Return the number of lines of blocks in a row at which blocks are nearly square."""

    def aspect_ratio(lines: int) -> float:
        wide = pixels / max(8, ceil(most / lines))
        high = 0.8 * row / lines
        return max(wide / high, high / wide)

    return min(range(1, 9), key=aspect_ratio)


def _blocks(blocks: Blocks, lines: int) -> dict[str, Any]:
    owners = blocks.owners
    numbers = np.arange(owners.size)
    order = np.lexsort((numbers, blocks.since, owners))
    counts = np.bincount(owners, minlength=1)
    place = np.empty(owners.size, np.int64)
    place[order] = numbers - np.repeat(counts.cumsum() - counts, counts)
    high = 0.8 / lines
    kinds = _kinds(blocks)
    styles = [theme.BLOCKS[kind] for kind in kinds]
    return {
        "virtual": numbers,
        "owner": owners,
        "x": place // lines + 0.5,
        "y": owners - 0.4 + (place % lines + 0.5) * high,
        "width": np.full(owners.size, 0.78),
        "height": np.full(owners.size, 0.78 * high),
        "kind": kinds,
        "color": [style.color for style in styles],
        "fill": [style.fill for style in styles],
        "hatch": [style.hatch for style in styles],
        "tooltip": [
            f"virtual worker {virtual} of worker {owner}: {kind}"
            + (f" to {taker}" if taker >= 0 else f" (first of {home})" if home != owner else "")
            for virtual, owner, kind, home, taker in zip(
                numbers.tolist(),
                owners.tolist(),
                kinds,
                blocks.homes.tolist(),
                blocks.takers.tolist(),
                strict=True,
            )
        ],
    }


def _kinds(blocks: Blocks) -> list[str]:
    has_moved = blocks.owners != blocks.homes
    kinds = np.select(
        [blocks.takers >= 0, blocks.came, has_moved],
        [theme.LEAVING, theme.ARRIVED, theme.MOVED],
        theme.INITIAL,
    )
    return [str(kind) for kind in kinds]


class SeriesFigure:
    """A chart of some numbers by slot, for every run."""

    def __init__(
        self, name: str, columns: Sequence[str], sources: Sequence[ColumnDataSource], ticks: str
    ) -> None:
        self.figure = _figure(
            name, x_range=DataRange1d(range_padding=0.02), y_range=DataRange1d(start=0)
        )
        self.figure.height = 168
        self.figure.xaxis.axis_label = "slot"
        self.figure.yaxis.formatter = CustomJSTickFormatter(code=ticks)
        self.figure.yaxis.ticker = BasicTicker(desired_num_ticks=4)
        self.cursor = Span(dimension="height", location=1, line_color=theme.INK, line_dash="dotted")
        self.figure.add_layout(self.cursor)
        styles = theme.RUNS[-len(sources) :]
        for number, (source, style) in enumerate(zip(sources, styles, strict=True)):
            is_first_of_two = number == 0 and len(sources) > 1
            for column in columns:
                line = self.figure.line(
                    x="slot",
                    y=column,
                    color=style.color,
                    line_width=1.2 if column == "p50" else 2.4,
                    line_dash="dashed" if is_first_of_two else "solid",
                    source=source,
                    name="first run" if is_first_of_two else "last run",
                )
                tooltip = f"slot @slot: @{column}_tooltip"
                self.figure.add_tools(_hover(tooltip, line, mode="vline"))


SERIES = {
    "rate": (("rate",), _SHORT_NUMBERS),
    "backlog": (("backlog",), _PERCENT),
    "latency": (("p99", "p50"), _SECONDS),
    "imbalance": (("imbalance",), _PERCENT),
}


def series_data(series: ChartSeries | None) -> dict[str, Any]:
    """Return the columns of the chart, empty before the first slot."""
    if series is None:
        names = ("slot", "rate", "backlog", "p50", "p99", "imbalance")
        return {name: [] for name in (*names, *(f"{name}_tooltip" for name in names[1:]))}
    return {
        "slot": series.slot,
        "rate": series.rate,
        "backlog": series.backlog,
        "p50": series.p50,
        "p99": series.p99,
        "imbalance": series.imbalance,
        "rate_tooltip": [f"{wording.whole(n)} messages/s" for n in series.rate.tolist()],
        "backlog_tooltip": [
            f"backlog {wording.percent(n)} of a slot" for n in series.backlog.tolist()
        ],
        "p50_tooltip": [f"p50 {wording.seconds(n)}" for n in series.p50.tolist()],
        "p99_tooltip": [f"p99 {wording.seconds(n)}" for n in series.p99.tolist()],
        "imbalance_tooltip": [f"imbalance {wording.percent(n)}" for n in series.imbalance.tolist()],
    }


def series_of(timeline: Timeline) -> ChartSeries | None:
    """Return the numbers of a run, or None before its first slot."""
    return timeline.series if len(timeline) else None


def _figure(name: str, **more: Any) -> figure:
    made = figure(
        name=name,
        height=200,
        min_width=200,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        min_border_right=12,
        min_border_top=6,
        **more,
    )
    for axis in made.axis:
        axis.major_label_text_font_size = _FONT
        axis.axis_label_text_font_size = _FONT
        axis.axis_label_text_font_style = "normal"
        axis.minor_tick_line_color = None
        for part in ("major_label_text", "axis_label_text", "axis_line", "major_tick_line"):
            setattr(axis, f"{part}_color", theme.INK)
    made.grid.grid_line_color = theme.INK
    made.grid.grid_line_alpha = 0.25
    made.xgrid.visible = name.startswith("bars")
    return made


def _hover(tooltip: str, renderer: Any, mode: Literal["mouse", "vline"] = "mouse") -> HoverTool:
    return HoverTool(tooltips=tooltip, renderers=[renderer], mode=mode, point_policy="follow_mouse")
