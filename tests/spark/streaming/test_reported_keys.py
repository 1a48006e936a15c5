"""A key that is hashed or hidden appears nowhere in what Steelyard writes about a stream."""

import logging
from pathlib import Path
from urllib.request import urlopen

import pytest
from bokeh.document import Document
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from steelyard.dashboard.page import Page
from steelyard.dashboard.runs import ShownRun
from steelyard.reported_keys import SECRET, ReportedKeys
from tests.spark.streaming.running import PLACEMENTS, group, history_of, start, stream_of
from tests.waiting import until

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

PLANTED = "ada.planted@example.org"
RARE = "bob.planted@example.org"


@pytest.fixture(scope="module")
def visits(spark, tmp_path_factory):
    """A folder with two files; half of the rows have the planted key."""
    folder = str(tmp_path_factory.mktemp("visits") / "in")
    rows = spark.range(0, 2000, 1, 2).selectExpr(
        f"if(id % 2 = 0, '{PLANTED}', if(id = 7, '{RARE}', string(id % 300))) AS page",
        "id",
        "timestamp_seconds(id) AS at",
    )
    rows.write.parquet(folder)
    return folder


def command(*arguments):
    """Run a command; return its output."""
    wide = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    return CliRunner().invoke(app, [*map(str, arguments)], env=wide).output


def everything_about(grouped, query, control, caplog, capsys):
    """Return all that is written about a stream, by its place."""
    history_of(grouped, 2)
    found = {str(p): p.read_text() for p in Path(control).rglob("*") if p.is_file()}
    found["progress"] = str([dict(p.observedMetrics) for p in query.recentProgress])
    found["history"] = repr(grouped.history())
    with grouped.serve_metrics(0) as server:
        address = f"http://127.0.0.1:{server.port}/metrics"
        found["metrics"] = urlopen(address).read().decode()
    document = Document()
    Page([ShownRun("a run", grouped.history)]).add_to(document)
    found["page"] = str(document.to_json())
    found["terminal"] = command("workers", "show", "--control", control)
    found["log"] = caplog.text
    capsys.readouterr()
    query.explain(extended=True)
    found["query plan"] = capsys.readouterr().out
    return found


@PLACEMENTS
@pytest.mark.parametrize("report_keys", ["plain", "hashed", "hidden"])
def test_nothing_about_a_stream_names_a_planted_key(
    spark, visits, tmp_path, caplog, capsys, monkeypatch, placement, report_keys
):
    """With "plain" the same search finds the key, so the search covers the right places."""
    caplog.set_level(logging.INFO)
    monkeypatch.setenv(SECRET, "a secret")
    grouped = group(
        stream_of(spark, visits), tmp_path, placement, routing=sy.Balance(report_keys=report_keys)
    )
    query = start(grouped.aggregate(sy.Count()), tmp_path / "checkpoint")
    query.awaitTermination()
    until(lambda: not grouped.control.owner())
    found = everything_about(grouped, query, tmp_path / "control", caplog, capsys)
    assert "InArrow" in found["query plan"]
    assert [place for place, text in found.items() if "a secret" in text] == []
    named = {place.rpartition("/")[2] for place, text in found.items() if "planted" in text}
    plain = {"history.jsonl", "progress", "history", "page", "terminal"}
    assert named == (plain if report_keys == "plain" else set())
    (hash_of,) = [ReportedKeys("hashed", "a secret").shown(PLANTED)]
    hashed = {place.rpartition("/")[2] for place, text in found.items() if hash_of in text}
    assert hashed == (plain if report_keys == "hashed" else set())
    if report_keys == "hidden":
        assert [()] * 2 == [slot.hot_keys for slot in grouped.history()]


@pytest.mark.parametrize("report_keys", ["hashed", "hidden"])
def test_the_error_of_a_failed_function_names_no_key(
    spark, visits, tmp_path, monkeypatch, report_keys
):
    """The setting may also come from the environment, here for a grouping without a Balance."""
    monkeypatch.setenv("STEELYARD_REPORT_KEYS", report_keys)
    plan = sy.plan(spark.read.parquet(visits), "page", workers=4)
    grouped = group(stream_of(spark, visits), tmp_path, routing=plan, salt=["id"])

    def fail(table):
        raise ValueError("no luck")

    failing = grouped.map_arrow(fail, "page string")
    query = start(failing, tmp_path / "checkpoint", mode="append")
    with pytest.raises(StreamingQueryException, match="no luck") as raised:
        query.awaitTermination()
    text = str(raised.value)
    assert "failed in micro-batch 0" in text
    assert "planted" not in text
    assert ("(#" in text) == (report_keys == "hashed")


@pytest.mark.classic_only(reason="commands find a Spark that runs in their process")
def test_the_command_shows_hashed_keys(visits, tmp_path):
    """Hot keys and results have the same hash."""
    output = command(
        *("stream", "--source", "parquet", "--path", visits, "--key", "page", "--once"),
        *("--control", tmp_path / "control", "--report-keys", "hashed"),
    )
    assert "planted" not in output
    assert 2 == output.count(ReportedKeys("hashed").shown(PLANTED))


def test_no_page_of_the_doctor_names_a_planted_key(spark, visits):
    """Neither its text nor its JSON nor its page, with the hot keys over time."""
    from steelyard.report.doctor import doctor_page

    frame = spark.read.parquet(visits).withColumn("null", F.lit(None).cast("string"))
    texts = {}
    for report_keys in ("plain", "hashed", "hidden"):
        found = sy.doctor.examine(
            frame, ["page", "null"], workers=4, time="at", report_keys=report_keys
        )
        assert (2000, True) == (found.messages, found.hottest_is_null)
        assert "planted" not in repr(found)
        whole = [found.describe(), found.to_json(), doctor_page(found), found._repr_html_()]
        texts[report_keys] = ["planted" in text for text in whole]
        has_hash = [ReportedKeys("hashed").shown(PLANTED) in text for text in whole]
        assert has_hash == [report_keys == "hashed"] * 4
    assert texts == {"plain": [True] * 4, "hashed": [False] * 4, "hidden": [False] * 4}
