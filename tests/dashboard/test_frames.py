"""The content of the page for a slot, and its sentences."""

import html
import html.parser
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.control.history import HotKeyShare
from steelyard.dashboard import tables, wording
from steelyard.dashboard.frames import Timeline
from steelyard.printable import printable
from steelyard.showing import escaped
from tests.dashboard.model import NASTY, histories, slot


@given(histories())
def test_shares_add_up_and_bars_are_those_of_the_slot(history):
    """Shares add up to one if there are messages, and bars have all messages."""
    timeline = Timeline(history[0])
    for place, known in enumerate(timeline.slots):
        frame = timeline.frame(place)
        assert sum(bar.share for bar in frame.bars) == pytest.approx(1.0 if known.messages else 0.0)
        assert sum(bar.messages for bar in frame.bars) == known.messages
        assert frame.summary.rate == timeline.series.rate[place]
        assert timeline.widest(place) >= max(bar.messages for bar in frame.bars)


def test_the_last_measured_capacity_is_kept():
    """A worker without messages keeps its outline."""
    timeline = Timeline([slot(1, [1, 1]), slot(2, [1, 1], messages=[10, 0])])
    assert [100.0, 100.0] == [bar.capacity for bar in timeline.frame(1).bars]
    assert timeline.frame(1).summary.utilization == pytest.approx(10 / 200)
    unknown = Timeline([slot(1, [1, 1], messages=[0, 0])]).frame(0)
    assert [None, None] == [bar.capacity for bar in unknown.bars]
    assert unknown.summary.utilization is None


def test_outlines_exclude_the_time_of_spark():
    """Spark's own time counts for throughput and utilization, not for the capacity of bars."""
    half = replace(slot(1, [1, 1]), working=0.5)
    frame = Timeline([half]).frame(0)
    assert [(10, 50.0)] * 2 == [(bar.messages, bar.capacity) for bar in frame.bars]
    assert (20.0, 0.1) == (frame.summary.rate, frame.summary.utilization)
    skewed = replace(half, working=3600.0)
    assert [100.0] * 2 == [bar.capacity for bar in Timeline([skewed]).frame(0).bars]


def test_overloaded_workers_and_moves_are_described():
    """The sentences have shares of messages and of capacity, and the moves."""
    states = ["normal", "busy", "drained"]
    moves = [(0, 1, 0), (1, 1, 0)]
    shown = slot(1, [2, 2, 0], messages=[20, 40, 0], states=states, moves=moves)
    frame = Timeline([shown]).frame(0)
    assert frame.finding == (
        "Worker 1 gets 67 % of the messages; it has 50 % of the capacity. Worker 2 is drained."
    )
    assert frame.action == "2 virtual workers move from 1 to 0."


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (slot(1, [1, 1], messages=[0, 0]), "No messages arrived in this slot."),
        (slot(1, [1, 1]), "No worker gets more than its share of the messages."),
        (slot(1, [1, 1], messages=[30, 10]), "Worker 0 gets 75 % of the messages; it has 50 %"),
        (slot(1, [1, 1], owners=[0, 1], messages=[30, 10]), "Worker 0 gets 75 %"),
        (
            slot(1, [1, 1], messages=[3, 1]),
            "Low load: the highest utilization of a worker is 3.0 %",
        ),
        (slot(1, [1, 1], states=["busy"] * 2, messages=[1, 1]), "Low load: the highest"),
        (slot(1, [1, 1], states=["busy", "busy"], messages=[30, 10]), "Worker 0 gets 75 % of"),
        (
            slot(1, [1] * 3, states=["busy", "busy", "idle"], messages=[40, 40, 10]),
            "Workers 0 and 1 get 89 % of the messages; they have 67 % of",
        ),
        (slot(1, [1, 1], states=["busy"] * 2, messages=[19, 0]), "No worker gets more"),
        (
            slot(1, [1] * 3, states=["normal", "normal", "drained"], messages=[30, 30, 0]),
            "No worker gets more than its share of the messages. Worker 2 is drained.",
        ),
    ],
)
def test_every_case_has_its_sentence(shown, sentence):
    assert Timeline([shown]).frame(0).finding.startswith(sentence)


def test_a_busy_worker_with_less_than_its_share_is_no_alarm():
    """Its state is about the next slot; the sentence is about this one."""
    shown = slot(1, [1, 1], states=["busy", "normal"], messages=[62, 38])
    workers = (replace(shown.workers[0], service=0.005), shown.workers[1])
    frame = Timeline([replace(shown, workers=workers)]).frame(0)
    assert [True, False] == [bar.capacity == 200 for bar in frame.bars]
    assert not frame.is_bad
    assert frame.finding == "No worker gets more than its share of the messages."


def test_a_busy_worker_of_unknown_capacity_is_reported():
    """Histories without service times have no capacities."""
    shown = slot(1, [1, 1], states=["busy", "normal"], messages=[30, 10])
    workers = tuple(replace(worker, service=None) for worker in shown.workers)
    frame = Timeline([replace(shown, workers=workers)]).frame(0)
    assert frame.finding == "Worker 0 is busy, with 75 % of the messages."


@pytest.mark.parametrize("states", [["normal", "normal"], ["busy", "idle"]])
def test_nothing_is_an_alarm_at_low_load(states):
    """Neither a state nor an imbalance, as for slots of earlier versions."""
    frame = Timeline([slot(1, [1, 1], messages=[4, 1], states=states)]).frame(0)
    assert not frame.is_bad
    assert frame.finding.startswith("Low load")


def test_the_backlog_is_relative_to_the_messages_of_the_slot():
    """29,900 waiting messages are few if a slot processes millions."""
    many = replace(slot(1, [1, 1]), messages=2_990_000)
    workers = (many.workers[0], replace(many.workers[1], backlog=29_900.0))
    timeline = Timeline([replace(many, workers=workers)])
    assert 0.01 == timeline.frame(0).summary.backlog == timeline.series.backlog[0]
    assert "1<small> % of a slot" in tables.summary(timeline.frame(0), is_simulated=False)


def test_the_state_of_a_worker_without_reports_is_inferred():
    """With key grouping workers report no state; an overloaded one is shown as busy."""
    bars = Timeline([slot(1, [1, 1], messages=[30, 10])]).frame(0).bars
    assert ["busy", "normal"] == [bar.state for bar in bars]
    reported = Timeline([slot(1, [1, 1], messages=[30, 10], owners=[0, 1])]).frame(0).bars
    assert ["normal", "normal"] == [bar.state for bar in reported]


def test_the_log_has_the_moves_up_to_a_slot():
    """The latest moves are first, and the length is limited."""
    moves = [(0, 0, 1), (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0)]
    slots = [slot(n, [1] * 5, moves=moves if n % 2 else ()) for n in range(1, 101)]
    timeline = Timeline(slots)
    assert [9, 7, 5, 3, 1] == [line.slot for line in timeline.log(9)]
    assert 40 == len(timeline.log(99))
    assert timeline.log(0)[0].text == (
        "5 virtual workers move from 0 (1), 1 (1), 2 (1) and 2 more to 0 and 1"
    )


class Tags(html.parser.HTMLParser):
    """The tags of some HTML, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@given(st.text(max_size=80))
def test_keys_are_text(key):
    """A key adds no tag, and its text is shown."""
    plain = Tags(tables.hot_keys([HotKeyShare("a", 0.5)]))
    found = Tags(tables.hot_keys([HotKeyShare(key, 0.5)]))
    assert plain.tags == found.tags
    assert wording.shortened(key) in found.text
    assert wording.shortened(key).isprintable()


def test_a_script_in_a_key_or_a_notice_is_text():
    assert "<script" not in tables.hot_keys([HotKeyShare(NASTY, 1.0)])
    assert "<script" not in tables.waiting(NASTY)
    assert "&lt;script&gt;" in tables.waiting(NASTY)


@given(st.text(max_size=80))
def test_any_text_on_the_page_is_shown_as_it_is(text):
    """A path, a state or a name changes no direction of text and closes no tag."""
    assert escaped(text).isprintable()
    assert printable(text) == html.unescape(escaped(text))
    assert Tags(tables.waiting("x")).tags == Tags(tables.waiting(text)).tags


def test_the_summary_has_numbers_with_units():
    text = tables.summary(Timeline([slot(7, [1, 1])]).frame(0), is_simulated=True)
    for part in ("20<small> messages/s", "10<small> %", "1.5<small> s", "slot 7 · 0:00:07"):
        assert part in text
    assert "No hot keys" in tables.hot_keys([])
    assert "No virtual worker has moved" in tables.moves([], is_simulated=False)
    lines = Timeline([slot(1, [1, 1], moves=[(0, 0, 1)])]).log(0)
    assert "1 virtual worker moves from 0 to 1" in tables.moves(lines, is_simulated=False)
