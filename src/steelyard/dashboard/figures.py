"""The figures: frames enter, what Bokeh draws leaves.

Text in figures is drawn on a canvas, where no markup works. Keys are in none of them.
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

_ROOM = 380
"""Pixels for all workers, if each then has enough."""
_ROW = (16, 46)
"""Pixels that a worker has, at least and at most."""
_HALF, _WIDE = 560, 1150
"""Pixels that blocks have beside the bars, and below them, on a large screen."""
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
    """What two figures with a row for each worker share."""

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
        """Make room for so many workers."""
        if workers != self.workers:
            self.workers = workers
            self.row = min(_ROW[1], max(_ROW[0], _ROOM / max(1, workers)))
            self.rows.start = workers - 0.5
            self.ticker.ticks = list(range(workers))
            self.figure.frame_height = round(self.row * workers)


class BarsFigure(WorkersFigure):
    """A bar for each worker, in an outline of what it could do."""

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
        self.figure.add_tools(_hover("@told", drawn))

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
    shown = [theme.STATES.get(bar.state, theme.STATES["normal"]) for bar in bars]
    return {
        "worker": [bar.worker for bar in bars],
        "state": [bar.state for bar in bars],
        "share": [bar.share for bar in bars],
        "messages": [bar.messages for bar in bars],
        "capacity": [np.nan if bar.capacity is None else bar.capacity for bar in bars],
        "end": [max(bar.messages, bar.capacity or 0.0) for bar in bars],
        "label": [wording.percent(bar.share) for bar in bars],
        "color": [look.color for look in shown],
        "fill": [look.fill for look in shown],
        "hatch": [look.hatch for look in shown],
        "told": [_told(bar) for bar in bars],
    }


def _told(bar: Bar) -> str:
    could = "" if bar.capacity is None else f" of {wording.whole(bar.capacity)} that it could do"
    parts = [
        f"worker {bar.worker}, {bar.state}",
        f"{wording.whole(bar.messages)} messages{could}",
        f"busy {wording.percent(bar.used)} of the time",
        wording.many(bar.virtual_workers, "virtual worker"),
        f"{wording.whole(bar.backlog)} messages wait",
        f"{bar.keys:,} keys",
    ]
    return " · ".join([*parts, *([f"p99 {wording.seconds(bar.p99)}"] if bar.p99 else [])])


class BlocksFigure(WorkersFigure):
    """The virtual workers, each a block in the row of its owner."""

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
        self.figure.add_tools(_hover("@told", drawn))

    def show(self, frame: Frame, most: int) -> None:
        """Draw a slot; no worker ever had more blocks than `most`."""
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
    "told",
)


def _lines(most: int, row: float, pixels: int) -> int:
    """Lines of blocks in a row, so that blocks are about as wide as high."""

    def unlike_a_square(lines: int) -> float:
        wide = pixels / max(8, ceil(most / lines))
        high = 0.8 * row / lines
        return max(wide / high, high / wide)

    return min(range(1, 9), key=unlike_a_square)


def _blocks(blocks: Blocks, lines: int) -> dict[str, Any]:
    owners = blocks.owners
    numbers = np.arange(owners.size)
    order = np.lexsort((numbers, blocks.since, owners))
    counts = np.bincount(owners, minlength=1)
    place = np.empty(owners.size, np.int64)
    place[order] = numbers - np.repeat(counts.cumsum() - counts, counts)
    high = 0.8 / lines
    kinds = _kinds(blocks)
    shown = [theme.BLOCKS[kind] for kind in kinds]
    return {
        "virtual": numbers,
        "owner": owners,
        "x": place // lines + 0.5,
        "y": owners - 0.4 + (place % lines + 0.5) * high,
        "width": np.full(owners.size, 0.78),
        "height": np.full(owners.size, 0.78 * high),
        "kind": kinds,
        "color": [look.color for look in shown],
        "fill": [look.fill for look in shown],
        "hatch": [look.hatch for look in shown],
        "told": [
            f"virtual worker {virtual} of worker {owner}, {kind}"
            + (f" for {taker}" if taker >= 0 else f" ({home})" if home != owner else "")
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
    is_guest = blocks.owners != blocks.homes
    kinds = np.select(
        [blocks.takers >= 0, blocks.came, is_guest],
        [theme.LEAVES, theme.CAME, theme.GUEST],
        theme.OWN,
    )
    return [str(kind) for kind in kinds]


class SeriesFigure:
    """Some numbers over the slots, of every run."""

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
        of_runs = theme.RUNS[-len(sources) :]
        for number, (source, look) in enumerate(zip(sources, of_runs, strict=True)):
            is_first_of_two = number == 0 and len(sources) > 1
            for column in columns:
                line = self.figure.line(
                    x="slot",
                    y=column,
                    color=look.color,
                    line_width=1.2 if column == "p50" else 2.4,
                    line_dash="dashed" if is_first_of_two else "solid",
                    source=source,
                    name="first run" if is_first_of_two else "last run",
                )
                told = f"slot @slot: @{column}_told"
                self.figure.add_tools(_hover(told, line, mode="vline"))


SERIES = {
    "rate": (("rate",), _SHORT_NUMBERS),
    "backlog": (("backlog",), _SHORT_NUMBERS),
    "latency": (("p99", "p50"), _SECONDS),
    "imbalance": (("imbalance",), _PERCENT),
}


def series_data(series: ChartSeries | None) -> dict[str, Any]:
    """The columns that the lines are drawn from."""
    if series is None:
        names = ("slot", "rate", "backlog", "p50", "p99", "imbalance")
        return {name: [] for name in (*names, *(f"{name}_told" for name in names[1:]))}
    return {
        "slot": series.slot,
        "rate": series.rate,
        "backlog": series.backlog,
        "p50": series.p50,
        "p99": series.p99,
        "imbalance": series.imbalance,
        "rate_told": [f"{wording.whole(n)} messages/s" for n in series.rate.tolist()],
        "backlog_told": [f"{wording.whole(n)} messages wait" for n in series.backlog.tolist()],
        "p50_told": [f"p50 {wording.seconds(n)}" for n in series.p50.tolist()],
        "p99_told": [f"p99 {wording.seconds(n)}" for n in series.p99.tolist()],
        "imbalance_told": [
            f"{wording.percent(n)} above the mean" for n in series.imbalance.tolist()
        ],
    }


def series_of(timeline: Timeline) -> ChartSeries | None:
    """The numbers of a run; None before it has a slot."""
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


def _hover(told: str, renderer: Any, mode: Literal["mouse", "vline"] = "mouse") -> HoverTool:
    return HoverTool(tooltips=told, renderers=[renderer], mode=mode, point_policy="follow_mouse")
