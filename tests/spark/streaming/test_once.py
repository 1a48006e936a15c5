"""Streams that end: no result stays with the workers, or the user learns how many do."""

import logging
from collections import Counter
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import steelyard as sy
from steelyard.cli import app
from tests.spark.streaming.running import group, stream_of, table
from tests.waiting import until

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
    pytest.mark.classic_only(reason="commands find a Spark that runs in their process"),
]

START = datetime(2024, 1, 1, tzinfo=UTC)


def add_file(folder, number, rows=900):
    """Add a file with some pages and moments to a folder, and return its rows."""
    ids = range(number * rows, (number + 1) * rows)
    pages = ["hot" if i % 2 else f"page {i % 70}" for i in ids]
    moments = [START + timedelta(seconds=5 * i) for i in ids]
    folder.mkdir(exist_ok=True)
    made = pa.table({"page": pages, "at": pa.array(moments, pa.timestamp("us", "UTC"))})
    pq.write_table(made, folder / f"{number}.parquet")
    return list(zip(pages, moments, strict=True))


def count_once(tmp_path, *more):
    """Run `steelyard stream --once` over all new files, one in each micro-batch."""
    arguments = [
        *("stream", "--source", "parquet", "--path", tmp_path / "in", "--files-per-batch", 1),
        *("--key", "page", "--placement", "delegated", "--once"),
        *("--sink", "parquet", "--out", tmp_path / "out"),
        *("--checkpoint", tmp_path / "checkpoint", "--control", tmp_path / "control", *more),
    ]
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def newest_results(folder, *keys):
    """Return the newest count of each key, of all micro-batches."""
    found = {}
    for batch in sorted(folder.glob("batch=*"), key=lambda path: int(path.name[6:])):
        for row in pq.read_table(batch).to_pylist():
            values = (row[key] for key in keys)
            found[tuple(map(start_of_window, values))] = row["count"]
    return found


def start_of_window(value):
    """Return the start of a window in UTC, in which Spark writes times; other values stay."""
    return value["start"].replace(tzinfo=UTC) if isinstance(value, dict) else value


def test_a_run_that_ends_writes_the_last_period(tmp_path):
    """A later run continues with the same totals."""
    rows = [row for number in range(3) for row in add_file(tmp_path / "in", number)]
    output = count_once(tmp_path, "--period", 10)
    assert Counter((page,) for page, _ in rows) == newest_results(tmp_path / "out", "page")
    assert "waited with the workers" not in output
    rows += add_file(tmp_path / "in", 3)
    count_once(tmp_path, "--period", 10)
    assert Counter((page,) for page, _ in rows) == newest_results(tmp_path / "out", "page")


def test_a_run_that_ends_writes_all_windows(tmp_path):
    """The last line has the number of results of windows that are still open."""
    rows = [row for number in range(3) for row in add_file(tmp_path / "in", number)]
    more = ("--time", "at", "--window", "10 minutes", "--watermark", "1 hour")
    output = count_once(tmp_path, *more, "--period", "30 minutes")
    start = timedelta(minutes=10)
    truth = Counter((at - (at - START) % start, page) for page, at in rows)
    found = newest_results(tmp_path / "out", "window", "page")
    assert truth == found
    passed = rows[-1][1] - timedelta(hours=1)
    still_open = sum(begin + start > passed for begin, _ in truth)
    assert f"{still_open:,} results of windows that the watermark has not passed" in output


def test_python_users_learn_how_many_results_wait(spark, tmp_path, caplog):
    """They wait in the checkpoint, because workers cannot know which micro-batch is the last."""
    rows = [row for number in range(3) for row in add_file(tmp_path / "in", number)]
    stream = stream_of(spark, tmp_path / "in").drop("id")
    grouped = group(stream, tmp_path, sy.Delegated(period=2))
    with caplog.at_level(logging.WARNING, "steelyard"):
        written = table(grouped.aggregate(sy.Count()), tmp_path / "checkpoint")
        until(lambda: "wait" in caplog.text)
    held = len({page for page, _ in rows[1800:]})
    assert held <= grouped.waiting() <= 4 * held, "every worker may have a part of a frequent key"
    assert f"{grouped.waiting():,} partial results wait with the delegated workers" in caplog.text
    assert sum(count for page, count in written if page == "hot") == 900
