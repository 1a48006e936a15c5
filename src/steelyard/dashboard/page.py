"""The page: runs enter; a Bokeh document leaves that follows them or shows an earlier slot."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from bokeh.document import Document
from bokeh.models import ColumnDataSource, InlineStyleSheet
from bokeh.models.widgets import Button, Div, Slider, Toggle

from steelyard.dashboard import tables, theme
from steelyard.dashboard.figures import (
    SERIES,
    BarsFigure,
    BlocksFigure,
    SeriesFigure,
    series_data,
    series_of,
)
from steelyard.dashboard.frames import Frame, Timeline
from steelyard.dashboard.runs import ShownRun
from steelyard.printable import printable
from steelyard.showing import escaped

EVERY = 400
"""Milliseconds between two updates of the page."""

_UPDATES_PER_SLOT = 2
"""Updates for which a slot is shown while a run is replayed."""


@dataclass
class _Shown:
    """A run on the page."""

    run: ShownRun
    bars: BarsFigure
    blocks: BlocksFigure | None
    summary: Div
    source: ColumnDataSource
    timeline: Timeline = field(default_factory=lambda: Timeline([]))


class Page:
    """One browser's view of the runs; each browser can show another slot."""

    def __init__(self, runs: Sequence[ShownRun]) -> None:
        style = InlineStyleSheet(css=_file("parts.css"))
        self._shown = [
            _Shown(
                run,
                BarsFigure(number),
                BlocksFigure(number, is_wide=len(runs) > 1) if run.has_blocks else None,
                _text(f"summary_{number}", style),
                ColumnDataSource(series_data(None), name=f"series_data_{number}"),
            )
            for number, run in enumerate(runs)
        ]
        sources = [shown.source for shown in self._shown]
        self._series = [
            SeriesFigure(name, columns, sources, ticks) for name, (columns, ticks) in SERIES.items()
        ]
        self._hot_keys, self._moves = _text("hot_keys", style), _text("moves", style)
        self._notice = _text("notice", style)
        self._notice.visible = False
        self._slider = Slider(
            name="slot",
            title="",
            show_value=False,
            start=0,
            end=1,
            value=0,
            step=1,
            disabled=True,
            sizing_mode="stretch_width",
            stylesheets=[style],
        )
        self._place_of = Div(name="place", text="", disable_math=True, stylesheets=[style])
        self._play = Toggle(name="play", label="▶ Play", stylesheets=[style])
        self._live = Button(name="live", label="Latest", stylesheets=[style])
        self._is_following = True
        self._is_ours = False
        """Whether the page, not the user, moves the slider."""
        self._updates = 0
        self._slider.on_change("value", lambda _, __, value: self._slid(value))
        self._live.on_click(lambda: self._go(self._last))
        self._play.on_change("active", lambda _, __, active: self._played(active))

    def add_to(self, document: Document) -> None:
        """Add the page to a document, and update it periodically."""
        document.title = "Steelyard"
        # Bokeh also accepts a text, which fills the blocks of its own template.
        document.template = _file("page.html")  # type: ignore[assignment]
        document.template_variables.update(
            css=_file("page.css"),
            script=_file("theme.js"),
            names=[printable(shown.run.name) for shown in self._shown],
            has_blocks=[shown.blocks is not None for shown in self._shown],
            states=tables.legend(theme.STATES),
            kinds=tables.legend(theme.BLOCKS),
        )
        for shown in self._shown:
            document.add_root(shown.summary)
            document.add_root(shown.bars.figure)
            if shown.blocks is not None:
                document.add_root(shown.blocks.figure)
        for series in self._series:
            document.add_root(series.figure)
        for root in (self._hot_keys, self._moves, self._notice, self._slider, self._place_of):
            document.add_root(root)
        document.add_root(self._play)
        document.add_root(self._live)
        self.update()
        document.add_periodic_callback(self.update, EVERY)

    def update(self) -> None:
        """Show new slots; advance by a slot if a run is replayed."""
        is_new = False
        for shown in self._shown:
            slots = shown.run.slots()
            if _differs(slots, shown.timeline.slots):
                shown.timeline = Timeline(slots)
                shown.source.data = series_data(series_of(shown.timeline))
                is_new = True
        self._set_notice()
        if is_new:
            self._grow()
        elif self._play.active:
            self._updates += 1
            if self._updates % _UPDATES_PER_SLOT == 0:
                self._step()

    @property
    def _last(self) -> int:
        return max(0, max(len(shown.timeline) for shown in self._shown) - 1)

    def _grow(self) -> None:
        """Extend the slider, and follow the run unless the user chose an earlier slot."""
        has_some = self._last > 0
        place = self._last if self._is_following else min(int(self._slider.value), self._last)
        self._is_ours = True
        self._slider.update(end=max(1, self._last), value=place, disabled=not has_some)
        self._is_ours = False
        self._show(place)

    def _step(self) -> None:
        place = int(self._slider.value) + 1
        if place >= self._last:
            self._play.active = False
        self._go(min(place, self._last))

    def _go(self, place: int) -> None:
        self._is_ours = True
        self._slider.value = place
        self._is_ours = False
        self._is_following = place >= self._last
        self._show(place)

    def _slid(self, value: float) -> None:
        if not self._is_ours:
            self._is_following = int(value) >= self._last
            self._show(int(value))

    def _played(self, active: bool) -> None:
        self._play.label = "❚❚ Pause" if active else "▶ Play"
        if active:
            self._updates = 0
            if int(self._slider.value) >= self._last:
                self._go(0)
            self._is_following = False

    def _show(self, place: int) -> None:
        """Show the slot at this index, or the last slot of a shorter run."""
        widest = max(
            shown.timeline.widest(min(place, len(shown.timeline) - 1)) for shown in self._shown
        )
        newest: Frame | None = None
        for shown in self._shown:
            if not len(shown.timeline):
                continue
            own = min(place, len(shown.timeline) - 1)
            frame = shown.timeline.frame(own)
            shown.summary.text = tables.summary(frame, is_simulated=shown.run.is_simulated)
            shown.bars.show(frame, widest)
            if shown.blocks is not None:
                shown.blocks.show(frame, shown.timeline.most_owned)
                lines = shown.timeline.log(own)
                self._moves.text = tables.moves(lines, is_simulated=shown.run.is_simulated)
            newest = frame
        if newest is None:
            return
        self._hot_keys.text = tables.hot_keys(newest.slot.hot_keys)
        for series in self._series:
            series.cursor.location = self._number(place)
        state = "latest" if self._is_following else "replay"
        here = f"slot {self._number(place):,} of {self._number(self._last):,}, {state}"
        self._place_of.text = f'<span class="place">{here}</span>'

    def _number(self, place: int) -> int:
        longest = max(self._shown, key=lambda shown: len(shown.timeline)).timeline.slots
        return longest[min(place, len(longest) - 1)].slot

    def _set_notice(self) -> None:
        notice = " ".join(filter(None, (shown.run.notice() for shown in self._shown)))
        text = f'<p class="notice">{escaped(notice)}</p>' if notice else ""
        if self._notice.text != text:
            self._notice.update(text=text, visible=bool(text))
        for shown in self._shown:
            if not len(shown.timeline) and not shown.summary.text:
                shown.summary.text = tables.waiting("")


def _differs(slots: Sequence[object], known: Sequence[object]) -> bool:
    """Return whether there are new slots, or the slots of a new run."""
    return len(slots) != len(known) or (bool(slots) and slots[-1] != known[-1])


def _text(name: str, style: InlineStyleSheet) -> Div:
    return Div(
        name=name, text="", disable_math=True, stylesheets=[style], sizing_mode="stretch_width"
    )


def _file(name: str) -> str:
    return (files("steelyard.dashboard") / "templates" / name).read_text("utf-8")
