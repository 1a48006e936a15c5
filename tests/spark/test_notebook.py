"""The notebook of the examples runs, and its stored outputs are those of the documentation."""

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.notebooks import PAGE, as_page, code_cells, load, run
from tests.spark.streaming.running import kept

SHOWN_AS_HTML = ("Routing plan: ", "Examination: ", "1 hot key", "History: ")


@pytest.mark.streaming
@pytest.mark.needs_spark("4.0", reason="sy.group_stream")
def test_every_cell_runs(spark):
    """The cells run in order, and their outputs are those that are stored."""
    names = {"__name__": "guide", "spark": spark}
    with kept(spark, STATE_IN_ROCKSDB):
        for cell in code_cells(load()):
            found = run(cell, names)
            assert list(map(_kinds, cell["outputs"])) == list(map(_kinds, found))
            assert list(map(_repeated, cell["outputs"])) == list(map(_repeated, found))


def _kinds(output):
    return output["output_type"], sorted(output.get("data", {}))


def _repeated(output):
    """Return what a result shows in a notebook; the busy times of a history always differ."""
    shown = "".join(output.get("data", {}).get("text/html", ""))
    return "" if ">History: " in shown else shown


def test_the_outputs_are_stored():
    """Plans, examinations, hot keys and the history are stored as they show themselves."""
    stored = [output for cell in code_cells(load()) for output in cell["outputs"]]
    pages = ["".join(output["data"]["text/html"]) for output in stored if "data" in output]
    for beginning in SHOWN_AS_HTML:
        assert any(f">{beginning}" in page for page in pages)
    assert [] == [output for output in stored if output["output_type"] == "error"]


def test_every_step_has_a_text():
    """A text stands before the code of each step, except for imports and the end."""
    kinds = [cell["cell_type"] for cell in load()["cells"]]
    assert kinds.count("markdown") >= 10
    assert ["markdown", "code"] == kinds[:2]


def test_the_page_of_the_documentation_is_the_notebook():
    """`make notebook` writes both."""
    assert as_page(load()) == PAGE.read_text("utf-8")
