"""Queries that are started again from their checkpoints with something changed."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.streaming.running import (
    EACH,
    group,
    last_of,
    run_into,
    stream_of,
    table,
    truth,
)
from tests.waiting import until

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

COUNT, SUM, MAX = "Count.column=''.", "Sum.column='id'.", "Max.column='id'."
SPARKS = "|value schema does not match existing state"
"""Spark may notice first that other aggregators of its own have states of other types."""


@pytest.mark.parametrize(
    ("settings", "aggregators", "others"),
    [
        pytest.param(
            {},
            [sy.Count(), sy.Sum("id")],
            [
                (
                    "page",
                    [sy.Count(), sy.Max("id")],
                    f"{COUNT}, {SUM}, and .* has {COUNT}, {MAX}:{SPARKS}",
                ),
                (
                    "page",
                    [sy.Sum("id"), sy.Count()],
                    f"{COUNT}, {SUM}, and .* has {SUM}, {COUNT}:{SPARKS}",
                ),
                ("twin", [sy.Count(), sy.Sum("id")], "keys page string, and .* has twin string:"),
            ],
            id="by the control path",
        ),
        pytest.param(
            {"placement": sy.Delegated()},
            [sy.Count(), sy.Sum("id")],
            [
                (
                    "page",
                    [sy.Count(), sy.Max("id")],
                    f"{COUNT}, {SUM}, and .* has {COUNT}, {MAX}:{SPARKS}",
                )
            ],
            id="by the state of a worker",
        ),
        pytest.param(
            {"control": None},
            [sy.Count(), sy.Sum("id"), sy.ApproxDistinct("id")],
            [
                (
                    "page",
                    [sy.Count(), sy.Sum("id"), sy.CollectSet("id")],
                    "ApproxDistinct.column='id', lg_k=12., and .* CollectSet.column='id'.:",
                )
            ],
            id="by the state of a shard",
        ),
    ],
)
def test_another_result_is_refused(spark, rows, files, tmp_path, settings, aggregators, others):
    """In a sentence that tells what was and what is; the same result goes on, and is exact."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))

    def run(key, aggregators, out):
        stream = stream_of(spark, tmp_path / "in").withColumn("twin", F.col("page"))
        asked = {"workers": 4, "control": tmp_path / "control", **settings}
        found = sy.group_stream(stream, key, **asked).aggregate(*aggregators)
        return run_into(tmp_path / out, found, tmp_path / "checkpoint")

    shutil.copy(parts[0], tmp_path / "in" / parts[0].name)
    written = run("page", aggregators, "out")
    shutil.copy(parts[1], tmp_path / "in" / parts[1].name)
    if settings:  # without the control path, the state tells
        until(lambda: not (tmp_path / "control" / "owner").exists())
        shutil.rmtree(tmp_path / "control", ignore_errors=True)
    for key, other, sentence in others:
        with pytest.raises(Exception, match=f"the checkpoint is of a query with the .*{sentence}"):
            run(key, other, "refused")
    written += run("page", aggregators, "out")
    expected = truth(rows.where(f"id < {2 * EACH}"))
    assert expected == last_of([row[:3] for row in written])


def test_another_period_sends_what_was_held(spark, tmp_path):
    """From a minute of event time to an hour: the same windows as Spark's, none of them late."""
    (tmp_path / "in").mkdir()
    stream = stream_of(spark, tmp_path / "in")
    minutes = sy.Window("at", "1 minute", watermark="1 minute")

    def put(number, *minutes):
        moments = pa.array([m * 60_000_000 for m in minutes], pa.timestamp("us", "UTC"))
        pages = ["rare", *["often"] * (len(minutes) - 1)]
        rows = pa.table({"page": pages, "id": range(len(minutes)), "at": moments})
        pq.write_table(rows, tmp_path / "in" / f"{number}.parquet")

    def run(period):
        grouped = group(stream, tmp_path, sy.Delegated(period=period), window=minutes)
        return run_into(tmp_path / "out", grouped.aggregate(sy.Count()), tmp_path / "checkpoint")

    put(1, 0, 0, 1)
    assert [] == run("1 minute")
    put(2, 1, 2, 3)
    written = run("1 hour")
    assert {0, 1} == {row[0]["start"].minute for row in written}, "at once"
    put(3, 2, 58, 59)
    assert [] == run("1 hour")
    put(4, 59, 61)
    written += run("1 hour")
    put(5, 62)
    written += run(1)
    found = {(row[0]["start"].timestamp() // 60, row[1]): row[2] for row in written}
    theirs = stream.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"), "page")
    expected = {
        (window.start.timestamp() // 60, page): count
        for window, page, count in table(theirs.count(), tmp_path / "theirs")
    }
    assert expected == found
