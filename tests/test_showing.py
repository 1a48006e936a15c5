"""Objects show themselves: short texts in a terminal, and safe, small HTML in a notebook."""

import pickle
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from steelyard import Assignment
from steelyard.control.history import History
from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.work import KindOfWork
from steelyard.plans import Planner
from steelyard.plans.description import BucketKey, KeyFacts
from steelyard.reported_keys import ReportedKeys
from steelyard.showing import Bars, picture, table_as_html, table_as_text
from steelyard.spark.hot_keys import HotKeyRows
from tests.dashboard.model import slot
from tests.hostile import HOSTILE, obeyed_by_a_terminal

COUNTS = np.concatenate([[900.0, 500.0], np.ones(62)])

TAGS = {"div", "code", "table", "tr", "th", "td", "svg", "rect", "line", "text"}
ATTRIBUTES = {
    *("style", "role", "aria-label", "viewBox", "width", "height", "font-size", "text-anchor"),
    *("fill", "fill-opacity", "stroke", "stroke-dasharray", "x", "x1", "x2", "y", "y1", "y2"),
}

NASTY = {
    "markup": HOSTILE,
    "script": "<script>alert(1)</script>",
    "attribute": "\"><img src=x onerror='alert(1)'>&amp;",
    "control characters": "\x00\x1b[2J\x07\r\n\u202e",
    "surrogate": "\ud800",
    "long": "x" * 10_000,
    "wide": "日" * 10_000,
    "bytes": b"\x00\xff<b>" * 5000,
    "null": None,
    "empty": "",
    "number": 7,
}


def plan(key):
    """A plan with two split buckets; the keys of one of them are known."""
    name = key if key is None else str(key)
    names = {0: (BucketKey((name, "b"), 0.5), BucketKey((None, name), 0.2))}
    made = Planner(8, buckets=64).update(COUNTS)
    return replace(made, facts=KeyFacts(np.arange(8.0), names))


def examination(key):
    """Examine counts of keys, which are valid texts or null."""
    is_valid = key is None or (isinstance(key, str) and key != "\ud800")
    counts = KeyCounts.of({key if is_valid else "a": 600, "b": 5}, 4)
    job = Job(KindOfWork.named("python"), (HOSTILE,), 4, None)
    return diagnose(counts, job, source=HOSTILE)


def hot_keys(key):
    return HotKeyRows([Row(page=key, user="a"), Row(page="b", user=key)], [0.5, 0.3])


def history(key):
    """Slots with a hot key. A report has only texts that are valid in UTF-8."""
    return History([slot(n, [50, 50], hot=[str(key)]) for n in range(1, 31)])


SHOWN = {
    "plan": plan,
    "description": lambda key: plan(key).describe(),
    "examination": examination,
    "hot keys": hot_keys,
    "history": history,
}
LARGE = {
    "plan": Planner(5000).update(np.arange(8192.0) ** 8),
    "history": History([slot(n, [1] * 200) for n in range(1000)]),
    "hot keys": HotKeyRows([Row(page=n) for n in range(5000)], [1 / 5000] * 5000),
    "assignment": Assignment.equal(2000, 100),
    "plan without counts": Planner(5000).plan,
    "one worker": Assignment.equal(1, 1),
    "no virtual workers": Assignment({0: [], 1: []}),
    "no slots": History(),
    "no hot keys": HotKeyRows([], []),
}


def parsed(shown):
    """Return the HTML of an object as a tree; it must be well-formed."""
    return ET.fromstring(shown._repr_html_())  # noqa: S314  # made by the code under test


def require_safe(shown):
    """Fail if the HTML of an object has a tag, an attribute or a style that it does not need."""
    for node in parsed(shown).iter():
        assert node.tag in TAGS
        assert set(node.attrib) <= ATTRIBUTES
        assert "url" not in node.get("style", "")
        # The page decides about the colors of text and background.
        assert not re.search(r"(?<![-\w])color:(?!inherit)", node.get("style", ""))
        assert not re.search(r"background:(?!none)", node.get("style", ""))


def require_short(shown, lines=25):
    """Fail if an object prints much, or characters that a terminal interprets."""
    text = repr(shown)
    assert [] == obeyed_by_a_terminal(text)
    assert len(text.splitlines()) <= lines
    assert max(map(len, text.splitlines())) <= 300
    assert "array" not in text


@pytest.mark.parametrize("key", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_a_key_is_shown_as_text(make, key):
    """A hostile key adds no tag and no attribute, and the text is short."""
    shown = make(key)
    require_safe(shown)
    require_short(shown)
    tags = [node.tag for node in parsed(shown).iter()]
    assert tags == [node.tag for node in parsed(make("a")).iter()]


@pytest.mark.parametrize("shown", LARGE.values(), ids=LARGE)
def test_a_large_object_is_shown_in_a_small_space(shown):
    """No text lists thousands of workers, slots or keys, and pictures group them."""
    require_safe(shown)
    require_short(shown)
    assert len(shown._repr_html_()) < 40_000


def texts(shown):
    """Return the texts of the HTML of an object, in order."""
    return [text for node in parsed(shown).iter() if (text := node.text)]


def test_a_plan_shows_its_loads_and_hot_keys():
    """The picture has both loads of each worker; the table names keys, or numbers of buckets."""
    shown = plan("news")
    found = texts(shown)
    assert "by key grouping: at most 2.000" in found  # the last partition has 7 of 28 rows
    assert "news, b, (null), news and others" in found
    assert "bucket 1" in found
    large = f"{100 * 900 / COUNTS.sum():.2f} %"
    assert large in found
    rectangles = [node for node in parsed(shown).iter("rect") if node.get("fill-opacity")]
    heights = [float(node.get("height")) for node in rectangles[1:]]  # the first is the legend's
    assert pytest.approx([n / 7 * max(heights) for n in range(8)], abs=0.1) == heights


def test_an_examination_shows_the_verdict_and_the_advice():
    found = texts(examination("news"))
    assert "news" in found
    assert any(text.startswith("Yes. The hottest key has 99.17 %") for text in found)
    assert any("sy.group_by(df, " in text for text in found)


def test_a_history_is_a_list_that_shows_the_latest_slots():
    """Slices show themselves, too; the text and the page list the last ten slots."""
    slots = history("news")
    assert list(slots) == slots
    assert isinstance(slots[-3:], History)
    assert slots[28:] == [slots[28], slots[29]]
    assert slots == pickle.loads(pickle.dumps(slots))
    lines = repr(slots).splitlines()
    assert "30 slots of 2 workers; the last 10" == lines[0]
    assert [str(n) for n in range(21, 31)] == [line.split()[0] for line in lines[2:]]
    assert "news 50 %" in texts(slots)
    assert "no slots yet" == repr(History())


def test_hot_keys_are_a_sequence_of_rows():
    """They compare with lists and can be unpacked, sliced and searched."""
    keys = hot_keys("x")
    first, second = keys
    assert [first, second] == keys
    assert keys == (first, second)
    assert keys != [second, first]
    assert keys != "x"
    assert first in keys
    assert [second] == keys[1:]
    assert "30.00 %" in repr(keys[1:])


@given(st.lists(st.lists(st.text(max_size=12), min_size=3, max_size=3), max_size=5))
def test_tables_have_the_same_cells_in_text_and_html(rows):
    """The columns of a text table are aligned, and no cell is lost in HTML."""
    head = ("a", "b", "c")
    assert len(rows) + 1 == len(table_as_text(head, rows))
    tree = ET.fromstring(table_as_html(head, rows))  # noqa: S314
    assert len(rows) + 1 == len(tree)
    assert all(len(row) == 3 for row in tree)


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=1000), st.floats(0, 1e300))
def test_a_picture_stays_in_its_frame(values, line):
    """Bars of any numbers have finite places, and the largest value is the tallest bar."""
    tree = ET.fromstring(picture([Bars("a", values)], ("first", "last"), line, "b"))  # noqa: S314
    heights = [float(node.get("height")) for node in tree.iter("rect")][1:]
    assert len(heights) == min(len(values), len(heights)) <= 128
    assert all(0 <= height <= 100 for height in heights)
    if max(values) >= line and max(values) > 0:
        assert 100 == max(heights)


@pytest.mark.parametrize("mode", ["hashed", "hidden"])
def test_the_table_of_hot_keys_can_hide_them(mode):
    """The rows have the keys, but no table names them, also not a table of a part."""
    hot = HotKeyRows([Row(page="ada@example.org"), Row(page=None)], [0.5, 0.3], ReportedKeys(mode))
    for shown in (hot, hot[:1]):
        assert "ada" not in repr(shown) + shown._repr_html_()
        assert ReportedKeys(mode).shown("ada@example.org") in repr(shown)
    assert "(null)" in repr(hot)
    assert hot[0] == Row(page="ada@example.org")


@pytest.mark.parametrize(
    ("latency", "text"), [(0.9999, "1 s"), (123.4, "2.06 min"), (8000, "2.22 h"), (None, "–")]
)
def test_a_history_shows_long_latencies_without_an_exponent(latency, text):
    """They are in seconds, minutes or hours."""
    shown = History([replace(slot(1, [5, 5]), p99=latency)])
    assert f"  {text}" in repr(shown)
    assert f">{text}<" in shown._repr_html_()
