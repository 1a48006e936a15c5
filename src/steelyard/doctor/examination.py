"""The result of the doctor, as numbers, text and JSON.

The numbers of `diagnosis.diagnose` enter; text for people and JSON for programs leave.
"""

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steelyard.doctor.advice import WORTH, Advice
from steelyard.doctor.costs import Cost
from steelyard.doctor.examination_view import html_of, line_of
from steelyard.doctor.periods import OverTime
from steelyard.doctor.plain_text import (
    columns_of,
    shown_key,
    shown_number,
    shown_time,
    worker_count,
)
from steelyard.doctor.strategies import KEY_GROUPING
from steelyard.doctor.work import KindOfWork
from steelyard.key_text import Name
from steelyard.printable import printable

_LISTED_KEYS = 10
"""Hottest keys that the text lists."""
_BAR_WIDTH = 8
"""Characters of the bar beside the hottest key."""
_NAME_WIDTH = 24
"""Most characters of a strategy in the table of costs."""
_LINE_WIDTH = 78
"""Most characters of a line, without its indentation."""


@dataclass(frozen=True)
class HotKey:
    """One of the hottest keys, and its share of the messages."""

    name: Name
    messages: int
    share: float

    def __str__(self) -> str:
        return shown_key(self.name)


@dataclass(frozen=True)
class TextSection:
    """A question, and the lines of its answer."""

    question: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Examination:
    """Whether data is skewed, how much the skew costs, and how to fix it."""

    source: str
    """Name of the data, for the heading."""
    key: tuple[str, ...]
    workers: int
    capacities: tuple[float, ...] | None
    work: KindOfWork
    """The kind of work on the rows of a key."""
    is_sample: bool
    """Whether the messages are a sample of more."""
    messages: int
    keys: int
    p1: float
    """Share of the messages with the hottest key."""
    top10: float
    """Share of the messages with one of the ten hottest keys."""
    top: tuple[HotKey, ...]
    """The hottest keys, at most twenty."""
    curve: tuple[tuple[int, int], ...]
    """Some ranks of keys, from 1 for the hottest, and the messages of these keys."""
    zipf: float | None
    """Exponent of the nearest Zipf distribution; None if there is only one key."""
    entropy: float
    """Entropy of the keys, in bits."""
    most_entropy: float
    """Entropy if all keys were equally hot, in bits."""
    over_time: OverTime | None
    """The hottest keys over time; None without a time column."""
    costs: tuple[Cost, ...]
    row_time: float
    """Microseconds that the work takes for a row: an estimate."""
    row_bytes: float | None
    """Bytes of a row in the shuffle of a join: an estimate; None for other work."""
    advice: Advice

    @property
    def skewed(self) -> str:
        """The degree of skew: "strong", "mild" or "none".

        It is strong if one key exceeds the fair share of a worker, and mild if several keys
        together do. With `capacities`, key grouping may be slow because of unequal speeds; that is
        not skew.
        """
        if self.p1 * self.workers > 1:
            return "strong" if self.workers > 1 else "none"
        by_key = next(cost for cost in self.costs if cost.strategy == KEY_GROUPING)
        return "mild" if by_key.slowdown >= WORTH and self.capacities is None else "none"

    @property
    def hottest_is_null(self) -> bool:
        """Whether the hottest key is null, or one of its columns is."""
        return None in self.top[0].name

    def description_of(self, cost: Cost) -> str:
        """Describe the strategy of a cost for a user."""
        return cost.strategy.described(self.workers, self.key, cost.tasks)

    def sections(self) -> tuple[TextSection, ...]:
        """Return questions and answers, in lines of at most 80 characters."""
        sections = [TextSection("Is it skewed?", self._skew_lines())]
        if self.over_time is not None:
            lines = self._drift_lines(self.over_time)
            sections.append(TextSection("Do the hot keys change?", lines))
        cost = f"What does the skew cost on {worker_count(self.workers)}?"
        sections.append(TextSection(cost, self._cost_lines()))
        sections.append(TextSection("What should I do?", self._advice_lines()))
        return tuple(sections)

    @property
    def heading(self) -> str:
        """The data and the key, in one line."""
        what = f"{self.source} by {', '.join(self.key)}" if self.source else ", ".join(self.key)
        return shown_key((what,), _LINE_WIDTH)

    @property
    def verdict(self) -> str:
        """The degree of skew, in some sentences."""
        fair = f"the fair share of a worker is {_percent(1 / self.workers)}"
        hottest = f"The hottest key has {_percent(self.p1)} of the messages; {fair}."
        if self.hottest_is_null and self.keys == 1:
            are = "are null: check the column" if len(self.key) == 1 else "have a null: check"
            return f"All keys {are} {', '.join(self.key)}."
        if self.hottest_is_null and self.skewed == "strong":
            it = "It is null" if len(self.key) == 1 else "It has a null"
            return f"Yes. {hottest} {it}: filter the nulls, or check the column."
        if self.skewed == "strong" and self.work.balanced_code is None:
            return f"Yes, but it does not matter for an aggregate. {hottest}"
        if self.skewed == "strong":
            return f"Yes. {hottest} It is {self.p1 * self.workers:.1f} times that share."
        if self.skewed == "mild":
            return f"A little. {hottest} No key is too large, but large keys share a worker."
        return f"No, not for {worker_count(self.workers)}. {hottest}"

    def describe(self) -> str:
        """Return everything as text for a terminal of 80 columns."""
        parts = [self.heading]
        for section in self.sections():
            lines = (f"  {line}".rstrip() for line in section.lines)
            parts.append("\n".join([section.question, *lines]))
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        return f"Examination({line_of(self)})"

    def _repr_html_(self) -> str:
        """Return the verdict, the hottest keys, the costs and the advice for a notebook."""
        return html_of(self)

    def to_json(self) -> str:
        """Return everything as JSON; characters that cannot be printed are escaped."""
        text = json.dumps(self.fields(), ensure_ascii=False, indent=2)
        return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)

    def fields(self) -> dict[str, Any]:
        """Return everything as values for JSON.

        A key of one column is a string, a key of several columns a list.
        """
        return {
            "source": self.source,
            "key": list(self.key),
            "workers": self.workers,
            "capacities": None if self.capacities is None else list(self.capacities),
            "work": self.work.name,
            "is_sample": self.is_sample,
            "messages": self.messages,
            "keys": self.keys,
            "p1": self.p1,
            "hottest_is_null": self.hottest_is_null,
            "top10": self.top10,
            "top": [
                {"key": _json_key(hot.name), "messages": hot.messages, "share": hot.share}
                for hot in self.top
            ],
            "curve": [list(point) for point in self.curve],
            "zipf": self.zipf,
            "entropy": self.entropy,
            "most_entropy": self.most_entropy,
            "skewed": self.skewed,
            "over_time": None if self.over_time is None else _json_drift(self.over_time),
            "row_time": self.row_time,
            "row_bytes": self.row_bytes,
            "costs": [cost.fields() for cost in self.costs],
            "recommendation": asdict(self.advice),
        }

    def _skew_lines(self) -> tuple[str, ...]:
        of = ("message" if self.messages == 1 else "messages") + self._sample_note
        zipf = "" if self.zipf is None else f", Zipf exponent {self.zipf:.2f}"
        facts = (
            f"{self.messages:,} {of}, {self.keys:,} {'key' if self.keys == 1 else 'keys'}{zipf}. "
            f"The ten hottest keys have {_percent(self.top10)}. The entropy is "
            f"{self.entropy:.1f} bits ({self.most_entropy:.1f} with equally hot keys)."
        )
        lines = [*_wrapped(self.verdict), *_wrapped(facts), ""]
        for hot in self.top[:_LISTED_KEYS]:
            bar = "█" * max(1, round(_BAR_WIDTH * hot.share / self.p1))
            lines.append(f"{_percent(hot.share):>8} {bar:<{_BAR_WIDTH}} {hot}")
        left = self.keys - len(self.top[:_LISTED_KEYS])
        if left:
            rest = 1 - sum(hot.messages for hot in self.top[:_LISTED_KEYS]) / self.messages
            lines.append(f"{_percent(rest):>8} {'':{_BAR_WIDTH}} ({left:,} other keys)")
        return tuple(lines)

    @property
    def _sample_note(self) -> str:
        return " (a sample)" if self.is_sample else ""

    def _drift_lines(self, over_time: OverTime) -> tuple[str, ...]:
        lines = [*_wrapped(self.drift), ""]
        spans = [_span(period.first, period.last) for period in over_time.periods]
        width = max(map(len, spans), default=0)
        for span, period in zip(spans, over_time.periods, strict=True):
            key = shown_key(period.name, _LINE_WIDTH - width - 12)
            lines.append(f"{span:<{width}}  {_percent(period.share):>8}  {key}")
        return tuple(lines)

    @property
    def drift(self) -> str:
        """Whether the hot keys change, in some sentences."""
        drift = self.over_time
        if drift is None:
            return ""
        if not drift.periods:
            return f"Unknown: none of {drift.sampled:,} sampled messages has a time."
        if len(drift.periods) == 1:
            return "Unknown: there are too few messages to compare periods."
        untimed = f", {drift.untimed:,} without a time" if drift.untimed else ""
        table = (
            f"The hottest key in each of {len(drift.periods)} periods with equal numbers of "
            f"messages (from a sample of {drift.sampled:,}{untimed}):"
        )
        if not drift.is_drifting:
            return f"No: no key is hot in only some periods. {table}"
        keys = ", ".join(shown_key(name, 30) for name in drift.come_and_go[:3])
        more = len(drift.come_and_go) - 3
        keys += f" and {more:,} more" if more > 0 else ""
        return f"Yes: these keys are hot in some periods and not in others: {keys}. {table}"

    def _cost_lines(self) -> tuple[str, ...]:
        head = ("", "largest", "", "with", "copies of", "copies of")
        below = ("", "task", "slowdown", "overhead", "a key", "hottest")
        rows = [
            (
                shown_key((self.description_of(cost),), _NAME_WIDTH),
                _percent(cost.largest_share),
                f"{cost.slowdown:.2f} ×",
                f"{cost.with_overhead:.2f} ×",
                f"{cost.copies:.2f}",
                f"{cost.hottest_copies:,}",
            )
            for cost in self.costs
        ]
        first, second, *lines = _columns((head, below, *rows))
        table = [first, second]
        for line, cost in zip(lines, self.costs, strict=True):
            table += [line, *(f"  {part}" for part in _wrapped(cost.note, _LINE_WIDTH - 2))]
        return (*table, "", *_wrapped(f"{self.cost_note} {self.assumptions}"))

    @property
    def cost_note(self) -> str:
        """What the columns of the costs mean."""
        return (
            "Largest task: its share of the messages. Slowdown: the time of the stage, divided by "
            f"its time {self.ideal}. With overhead: the same with the time to start tasks and to "
            "count keys. Copies: the number of workers that hold a key, on average and for the "
            "hottest key."
        )

    @property
    def assumptions(self) -> str:
        """What the costs assume, because it cannot be counted."""
        bytes_ = f" and {self.row_bytes:,.0f} bytes (row_bytes)" if self.row_bytes else ""
        time = f"{shown_number(self.row_time)} microseconds (row_time)"
        return f"The doctor assumes {time}{bytes_} for a row."

    @property
    def ideal(self) -> str:
        """The distribution that slowdowns are relative to."""
        if self.capacities is None:
            return "if all workers had equal loads"
        return "if loads were proportional to the capacities"

    def _advice_lines(self) -> tuple[str, ...]:
        advice = self.advice
        what = advice.what[0].upper() + advice.what[1:] + "."
        assumed = f"This assumes {self.work.meaning} (work={self.work.name})."
        code = [
            part
            for line in advice.code.split("\n")
            for part in textwrap.wrap(
                line, _LINE_WIDTH - 4, subsequent_indent="    ", break_on_hyphens=False
            )
        ]
        return (*_wrapped(what), "", *(f"  {line}" for line in code), "",
                *_wrapped(advice.why), *_wrapped(assumed))  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _json_drift(drift: OverTime) -> dict[str, Any]:
    return {
        "hot_keys_change": drift.is_drifting,
        "come_and_go": [_json_key(name) for name in drift.come_and_go],
        "sampled": drift.sampled,
        "untimed": drift.untimed,
        "periods": [
            {"first": p.first, "last": p.last, "key": _json_key(p.name), "share": p.share}
            for p in drift.periods
        ],
        "courses": [
            {"key": _json_key(course.name), "shares": list(course.shares)}
            for course in drift.courses
        ],
    }


def _json_key(name: Name) -> str | list[str | None] | None:
    return name[0] if len(name) == 1 else list(name)


def _span(first: float, last: float) -> str:
    hours = shown_time(first) == shown_time(last)
    return f"{shown_time(first, with_hours=hours)} to {shown_time(last, with_hours=hours)}"


def _wrapped(text: str, width: int = _LINE_WIDTH) -> list[str]:
    kept = printable(text).replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(kept, width, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Align the first column to the left and the others to the right."""
    widths = [max(map(columns_of, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        line = first + " " * (widths[0] - columns_of(first))
        for cell, width in zip(others, widths[1:], strict=True):
            line += f"{cell:>{width + 2}}"
        lines.append(line.rstrip())
    return lines
