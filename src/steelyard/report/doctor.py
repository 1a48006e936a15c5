"""The page of the doctor: one HTML file with embedded figures."""

from datetime import UTC, datetime

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import steelyard
from steelyard.doctor import Examination, OverTime
from steelyard.doctor.plain_text import shown_key, shown_time
from steelyard.doctor.zipf_line import zipf_line
from steelyard.report.drawing import THEME
from steelyard.report.rendering import as_png, as_text, rendered

# Colors that color-blind readers can tell apart.
_PLAIN, _OURS, _FIT = "#D55E00", "#0072B2", "#888888"
_LINES = (
    ("#D55E00", "solid", "s"),
    ("#0072B2", (0, (5, 1.5)), "o"),
    ("#009E73", (0, (3, 1, 1, 1)), "^"),
    ("#CC79A7", (0, (1, 1)), "D"),
    ("#666666", (0, (6, 1, 1, 1)), "v"),
)


def doctor_page(found: Examination) -> str:
    """Return the page as one HTML document with embedded figures."""
    pictures = {"ranks": keys_figure(found), "costs": costs_figure(found)}
    if found.over_time is not None and len(found.over_time.periods) > 1:
        pictures["times"] = times_figure(found.over_time, found.workers)
    return rendered(
        "doctor.html",
        found=found,
        pictures={name: as_text(as_png(figure)) for name, figure in pictures.items()},
        shown_key=shown_key,
        colors=[color for color, _, _ in _LINES],
        version=steelyard.__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def keys_figure(found: Examination) -> Figure:
    """Draw the share of each key by rank, and the fair share of a worker."""
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        axes = figure.subplots()
        ranks = [rank for rank, _ in found.curve]
        shares = [100 * count / found.messages for _, count in found.curve]
        axes.plot(ranks, shares, "o", color=_PLAIN, markersize=3.5, label="keys")
        line = zipf_line(found.curve)
        if line is not None:
            ends = (line.first, line.last)
            heights = [100 * line.messages(rank) / found.messages for rank in ends]
            label = f"Zipf {line.exponent:.2f}, ranks {line.first:,} to {line.last:,}"
            axes.plot(ends, heights, ":", color=_FIT, label=label)
        fair = 100 / found.workers
        axes.axhline(fair, color=_OURS, linestyle="--", label="fair share of a worker")
        axes.set(xscale="log", yscale="log", xlabel="rank of the key", ylabel="% of the messages")
        axes.set_ylim(min(shares) / 2, max(*shares, fair) * 2)
        axes.legend()
    return figure


def costs_figure(found: Examination) -> Figure:
    """Draw the slowdown with overhead and the copies of a key for each strategy."""
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(9.6, 0.9 + 0.33 * len(found.costs)), layout="constrained")
        slowdowns, copies = figure.subplots(1, 2, sharey=True)
        colors = [_OURS if cost.strategy.is_ours else _PLAIN for cost in found.costs]
        _bars(slowdowns, [cost.with_overhead for cost in found.costs], colors, "{:.2f} ×")
        _bars(copies, [cost.copies for cost in found.costs], colors, "{:.2f}")
        slowdowns.set_yticks(range(len(found.costs)), [cost.strategy.label for cost in found.costs])
        slowdowns.invert_yaxis()
        slowdowns.set(title="slowdown of the stage, with overhead (1 is ideal)")
        copies.set(title="copies of a key, on average")
    return figure


def times_figure(seen: OverTime, workers: int) -> Figure:
    """Draw the shares of the hottest keys by period; the page names these keys."""
    with mpl.rc_context(THEME):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots()
        places = range(1, len(seen.periods) + 1)
        for number, course in enumerate(seen.courses):
            color, dashes, marker = _LINES[number]
            shares = [100 * share for share in course.shares]
            axes.plot(
                places,
                shares,
                color=color,
                linestyle=dashes,
                marker=marker,
                label=f"key {number + 1}",
            )
        fair = 100 / workers
        axes.axhline(fair, color=_FIT, linestyle="--", label="fair share of a worker")
        axes.set_xticks(list(places), [shown_time(period.first) for period in seen.periods])
        axes.tick_params(axis="x", labelsize=7.5)
        axes.set(xlabel="start of the period", ylabel="% of the messages", ylim=(0, None))
        axes.legend(ncols=2)
    return figure


def _bars(axes: Axes, lengths: list[float], colors: list[str], form: str) -> None:
    places = list(range(len(lengths)))
    axes.barh(places, lengths, 0.66, color=colors)
    axes.axvline(1, color="#444", linewidth=0.8)
    for place, length in zip(places, lengths, strict=True):
        label = form.format(length)
        axes.annotate(
            label, (length, place), xytext=(4, 0), textcoords="offset points", va="center"
        )
    axes.set_xlim(0, 1.18 * max(lengths))
    axes.grid(visible=False, axis="y")
