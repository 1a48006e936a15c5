"""The document of the page, without a browser."""

import numpy as np
from bokeh.document import Document

from steelyard.dashboard.figures import SERIES
from steelyard.dashboard.page import Page
from steelyard.dashboard.runs import Finished, ShownRun
from steelyard.printable import printable
from tests.dashboard.model import NASTY, slot
from tests.hostile import HOSTILE, obeyed_by_a_terminal


class Opened:
    """An opened page."""

    def __init__(self, *runs):
        self.page, self.document = Page(runs), Document()
        self.page.add_to(self.document)

    def __getitem__(self, name):
        return self.document.get_model_by_name(name)

    def data(self, name):
        return self[name].data


def moving(slots):
    """Return one more slot of two workers; a virtual worker moves after the first slot."""
    first = slot(1, [2, 2], moves=[(1, 0, 1)], messages=[90, 10], states=["busy", "idle"])
    second = slot(2, [1, 3], hot=[NASTY])
    third = slot(3, [1, 3], messages=[20, 60])
    slots[:] = [first, second, third][: len(slots) + 1]
    return slots


def test_bars_and_blocks_follow_a_run_that_goes_on():
    """The latest slot has a bar for each worker and a block for each virtual worker."""
    slots = moving([])
    opened = Opened(ShownRun("a run", Finished(slots)))
    bars, blocks = opened.data("bars_data_0"), opened.data("blocks_data_0")
    assert ["busy", "idle"] == bars["state"]
    assert [90.0, 10.0] == bars["messages"]
    assert [0, 0, 1, 1] == np.array(blocks["owner"]).tolist()
    assert ["initial owner", "about to move", "initial owner", "initial owner"] == blocks["kind"]
    assert opened["slot"].disabled, "there is only one slot"
    moving(slots)
    opened.page.update()
    blocks = opened.data("blocks_data_0")
    assert [0, 1, 1, 1] == np.array(blocks["owner"]).tolist()
    assert ["initial owner", "just moved", "initial owner", "initial owner"] == blocks["kind"]
    assert (1, False) == (opened["slot"].value, opened["slot"].disabled)
    assert "slot 2 of 2, latest" in opened["place"].text


def test_the_slider_goes_back_and_stays_there():
    """New slots do not move the slider; the button selects the latest slot."""
    slots = moving(moving([]))
    opened = Opened(ShownRun("a run", Finished(slots)))
    opened["slot"].value = 0
    assert [90.0, 10.0] == opened.data("bars_data_0")["messages"]
    moving(slots)
    opened.page.update()
    assert (0, 2) == (opened["slot"].value, opened["slot"].end)
    assert [90.0, 10.0] == opened.data("bars_data_0")["messages"]
    assert "slot 1 of 3, replay" in opened["place"].text
    assert [1, 2, 3] == np.array(opened.data("series_data_0")["slot"]).tolist()
    opened.page._go(2)
    assert [20.0, 60.0] == opened.data("bars_data_0")["messages"]
    assert "latest" in opened["place"].text


def test_a_run_is_replayed():
    """The replay shows every slot from the first to the last."""
    opened = Opened(ShownRun("a run", Finished(moving(moving(moving([]))))))
    opened["play"].active = True
    seen = []
    for _ in range(6):
        seen.append(opened["slot"].value)
        opened.page.update()
    assert [0, 0, 1, 1, 2, 2] == seen
    assert not opened["play"].active
    assert "Play" in opened["play"].label


def test_two_runs_are_side_by_side():
    """A shorter run stays at its last slot, and both runs have the same scale."""
    first, last = [slot(1, [1, 1], messages=[400, 0])], moving(moving([]))
    opened = Opened(
        ShownRun("key grouping", Finished(first), has_blocks=False),
        ShownRun("ours", Finished(last)),
    )
    assert [400.0, 0.0] == opened.data("bars_data_0")["messages"]
    assert opened["blocks_data_0"] is None
    assert opened["bars_0"].x_range.end == opened["bars_1"].x_range.end
    assert 4 == len(opened.data("blocks_data_1")["owner"])
    assert [1] == np.array(opened.data("series_data_0")["slot"]).tolist()


def test_every_chart_has_its_lines_and_its_place():
    """Lines have data before and after the first slot, and the page has a place for each chart."""
    for slots in ([], moving([])):
        opened = Opened(ShownRun("a run", Finished(slots)))
        data = opened.data("series_data_0")
        for name, (columns, _) in SERIES.items():
            assert f"embed(roots.{name})" in opened.document.template
            assert opened[name] is not None
            for column in columns:
                assert len(slots) == len(data[column]) == len(data[f"{column}_tooltip"])


def test_keys_are_text_and_no_formulas():
    """Keys are only in a table."""
    opened = Opened(ShownRun(NASTY, Finished(moving(moving([])))))
    assert "&lt;script&gt;" in opened["hot_keys"].text
    assert opened["hot_keys"].disable_math
    texts = [model.text for model in opened.document.models if hasattr(model, "text")]
    assert not [text for text in texts if "<script" in str(text)]


def test_names_and_notices_are_plain_text():
    """They cannot change the direction of text."""
    run = ShownRun(HOSTILE, Finished([slot(1, [1], hot=[HOSTILE])]), notice=lambda: HOSTILE)
    opened = Opened(run)
    variables = opened.document.template_variables
    assert [printable(HOSTILE)] == variables["names"]
    assert [] == obeyed_by_a_terminal(opened["notice"].text + opened["hot_keys"].text)


def test_a_run_without_slots_shows_its_notice():
    notes = ["there are no slots yet"]
    opened = Opened(ShownRun("a run", list, notice=lambda: notes[0]))
    assert "Waiting for the first slot" in opened["summary_0"].text
    assert "there are no slots yet" in opened["notice"].text
    assert opened["notice"].visible
    notes[0] = ""
    opened.page.update()
    assert not opened["notice"].visible


def test_a_restart_with_other_workers_is_shown():
    """The figures get rows for the new workers."""
    slots = [slot(1, [1, 1])]
    opened = Opened(ShownRun("a run", Finished(slots)))
    slots.append(slot(2, [1, 1, 1]))
    opened.page.update()
    assert [0, 1, 2] == list(opened.data("bars_data_0")["worker"])
    assert 2.5 == opened["bars_0"].y_range.start
