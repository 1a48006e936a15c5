"""Figures are readable without colors, and pages are safe with any text."""

import pandas as pd
import pytest

from steelyard import experiments
from steelyard.experiments import Claim, Experiment, Panel, Results, Scale
from steelyard.report import claims_in_markdown, draw, page
from steelyard.report.drawing import _STYLES
from steelyard.report.reproduction import FigureSection


def results(**columns):
    rows = {"time": float("nan"), "metric": "imbalance", "configuration": "x", "cluster": "equal"}
    return Results(pd.DataFrame({**columns, **rows}))


def experiment(*panels):
    return Experiment("one", "A <b>title</b>", "said", lambda _: [], panels, lambda _: [])


@pytest.mark.parametrize("name", experiments.names())
def test_lines_are_distinct_without_colors(name):
    """No two schemes of one figure have the same dashes and the same marker."""
    made = experiments.named(name).configurations(Scale(0.02))
    shown = {c.scheme for c in made if c.scheme in _STYLES}
    styles = {(str(_STYLES[scheme][1]), _STYLES[scheme][2]) for scheme in shown}
    assert len(styles) == len(shown)


def test_every_kind_of_panel_is_drawn():
    """There are lines, bars, and a heat map with a cell that never converged."""
    table = results(
        scheme=["KG", "KG", "CG", "CG", "CG"],
        workers=[5, 10, 5, 10, 10],
        value=[1.0, 2.0, 0.0, 0.01, float("nan")],
    )
    table.table["cluster"] = ["{1,2}", "{2,2}", "{1,2}", "{1,4}", "{2,4}"]
    panels = [
        Panel(
            "imbalance",
            "workers",
            "imbalance",
            "workers",
            kind=kind,
            log="" if kind == "heat" else "y",
        )
        for kind in ("lines", "bars", "heat")
    ]
    figure = draw(experiment(*panels), table)
    lines, bars, heat = figure.axes[:3]
    assert len(lines.lines) == 2
    assert len(bars.patches) == 4
    texts = sorted(text.get_text() for text in heat.texts)
    assert texts == ["0.0", "0.5", "2", "never"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["KG", "CG"]


def test_panels_without_data_are_left_out():
    """For example, a real stream may be missing."""
    table = results(scheme=["KG"], workers=[5], value=[1.0])
    wanted = Panel("imbalance", "workers", "imbalance", "workers")
    missing = Panel("memory", "workers", "memory", "workers")
    assert len(draw(experiment(wanted, missing), table).axes) == 1


def test_any_text_is_plain_text_on_the_page():
    """A key, a title or a claim may contain markup."""
    claim = Claim("<script>alert(1)</script>", "Q1 | a", "1 < 2 & 3", agrees=False)
    shown = page([FigureSection(experiment(), b"png", [claim])], fraction=0.5)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "A &lt;b&gt;title" in shown
    assert "0.5 of the full size" in shown
    assert "✗ does not" in shown
    assert r"Q1 \| a; one" in claims_in_markdown({"one": [claim]})
