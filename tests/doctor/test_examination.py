"""The text, the JSON and the page of an examination."""

import html
import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.periods import over_time
from steelyard.doctor.plain_text import columns_of, shown_key
from steelyard.doctor.work import KindOfWork
from steelyard.report.rendering import rendered
from tests.hostile import HOSTILE, obeyed_by_a_terminal
from tests.strategies import KEY_COUNTS


def examination(plain, workers=4, seen=None, **settings):
    work = KindOfWork.named(settings.pop("work", "python"))
    job = Job(work, settings.pop("key", ("page",)), workers, **settings)
    return diagnose(KeyCounts.of(plain, workers), job, source="visits", over_time=seen)


@settings(max_examples=30)
@given(
    KEY_COUNTS,
    st.integers(1, 3000),
    st.sampled_from(["python", "join", "stream"]),
    st.sampled_from(["a name longer than any sensible one would be " * 3, HOSTILE]),
)
def test_the_text_fits_a_terminal(plain, workers, work, key):
    """It fits 80 columns with wide characters, and has no control characters of a terminal."""
    text = examination(plain, workers, work=work, key=(key,)).describe()
    assert max(map(columns_of, text.split("\n"))) <= 80
    assert [] == obeyed_by_a_terminal(text)
    only_nulls = examination({None: 9 * workers}, workers, work=work, key=(key,)).describe()
    assert [] == obeyed_by_a_terminal(only_nulls)


@settings(max_examples=30)
@given(KEY_COUNTS, st.text(min_size=1, max_size=30))
def test_pages_and_json_escape_control_characters(plain, column):
    """JSON is printed to terminals, and keys on the page may contain markup."""
    seen = over_time(np.arange(200.0), np.zeros(200, int), [(HOSTILE,)], workers=4)
    found = examination({HOSTILE: 700, **plain}, key=(column, HOSTILE), seen=seen)
    text = found.to_json()
    assert [] == obeyed_by_a_terminal(text)
    assert [column, HOSTILE] == json.loads(text)["key"]
    texts = {"found": found, "pictures": {"times": "x"}, "shown_key": shown_key, "colors": ["x"]}
    page = rendered("doctor.html", version="1", date="today", **texts)
    assert [] == obeyed_by_a_terminal(page)
    assert "<script>" not in page
    assert html.escape(shown_key((HOSTILE,))).replace("&#x27;", "&#39;") in page


@given(st.text(max_size=200), st.integers(2, 60))
def test_keys_are_cut_and_escaped(text, width):
    """A key is never wider than the limit, and a short plain key is unchanged."""
    shown = shown_key((text,), width)
    assert columns_of(shown) <= width
    assert shown.isprintable()
    if text.isprintable() and 0 < columns_of(text) <= width:
        assert text == shown


@settings(max_examples=30)
@given(KEY_COUNTS)
def test_json_has_exact_numbers_and_unchanged_keys(plain):
    found = examination(plain)
    read = json.loads(found.to_json())
    assert (sum(plain.values()), len(plain)) == (read["messages"], read["keys"])
    assert max(plain.values()) / sum(plain.values()) == read["p1"]
    assert {hot["key"]: hot["messages"] for hot in read["top"]}.items() <= plain.items()
    assert [cost.strategy.name for cost in found.costs] == [
        cost["strategy"] for cost in read["costs"]
    ]
    assert {"what", "code", "why"} == set(read["recommendation"])
    assert read["over_time"] is None


def test_a_hot_null_is_reported_in_text_and_json():
    some = examination({None: 900, **{str(i): 1 for i in range(100)}})
    assert "It is null: filter the nulls, or check the column." in some.verdict
    assert json.loads(some.to_json())["hottest_is_null"] is True
    assert "All keys are null: check the column page." == examination({None: 900}).verdict
    assert json.loads(examination({"hot": 900, None: 1}).to_json())["hottest_is_null"] is False


def test_every_question_is_answered():
    """The question about time is asked only if there are times."""
    text = examination({"hot": 500, **{str(i): 1 for i in range(500)}}).describe()
    for words in ("Is it skewed?", "Yes. The hottest key has 50.00 %", "cost on 4 workers?",
                  "repartition(4, page)", "What should I do?", "sy.group_by(df"):  # fmt: skip
        assert words in text
    assert "hot keys change" not in text
    even = examination({str(i): 9 for i in range(2000)})
    assert "No, not for 4 workers." in even.describe()


def test_levels_of_skew():
    """Strong: one key is too large for a worker. Mild: several keys together are too large."""
    few = {str(i): 100 for i in range(8)}
    assert "strong" == examination({"hot": 9000, **few}).skewed
    assert "mild" == examination(few).skewed
    assert "none" == examination({str(i): 3 for i in range(5000)}).skewed
    assert "none" == examination({"hot": 9000}, workers=1).skewed


@given(st.integers(1, 2000), st.integers(1, 50), st.integers(0, 100))
def test_keys_that_stay_do_not_come_and_go(size, workers, seed):
    """Equal shares in all periods are no change, and neither are random differences."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(3, size, p=[0.6, 0.3, 0.1])
    seen = over_time(np.arange(size, dtype=float), keys, [("a",), ("b",), ("c",)], workers)
    assert not seen.is_drifting
    assert sum(1 for _ in seen.periods) == max(1, min(8, size // 50))


def test_keys_that_are_hot_in_turn_are_reported():
    """Messages without a time are counted, but belong to no period."""
    times = np.append(np.arange(800.0), [np.nan] * 10)
    keys = np.append(np.repeat([0, 1], 400), [2] * 10)
    seen = over_time(times, keys, [("cat",), ("dog",), ("cow",)], workers=4)
    assert (("cat",), ("dog",)) == seen.come_and_go
    assert ["cat"] * 4 + ["dog"] * 4 == [period.name[0] for period in seen.periods]
    assert (810, 10) == (seen.sampled, seen.untimed)
    found = examination({"cat": 400, "dog": 400, "cow": 10}, seen=seen)
    text = " ".join(found.describe().split())
    assert "Yes: these keys are hot in some periods and not in others: cat, dog." in text
    assert "10 without a time" in text
    reported = json.loads(found.to_json())["over_time"]
    assert reported["hot_keys_change"] is True
    assert ["cat", "dog"] == reported["come_and_go"]


def test_without_enough_times_a_change_is_unknown():
    """Either no row has a time, or there are too few rows."""
    none = over_time(np.array([np.nan, np.nan]), np.array([0, 0]), [("a",)], workers=2)
    assert "Unknown: none of 2 sampled" in examination({"a": 2}, seen=none).describe()
    few = over_time(np.array([1.0, 2.0]), np.array([0, 0]), [("a",)], workers=2)
    assert "Unknown: there are too few" in examination({"a": 2}, seen=few).describe()
