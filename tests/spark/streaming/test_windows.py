"""Windows of event time give Spark's results, and periods lose no rows."""

import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.streaming.running import (
    EACH,
    FILES,
    PLACEMENTS,
    SCHEMA,
    group,
    last_of,
    run_into,
    stream_of,
    table,
    truth,
)

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]


@pytest.mark.parametrize(
    ("placement", "mode", "slide"),
    [("pull", "append", "1 hour"), ("delegated", "update", None), ("delegated", "append", None)],
)
def test_windows_have_the_same_results_as_in_spark(stream, tmp_path, placement, mode, slide):
    """Tumbling and sliding windows have the same rows as with Spark's `window`."""
    hours = sy.Window("at", "2 hours", slide, watermark="30 minutes")
    grouped = group(stream, tmp_path, placement, window=hours)
    ours = grouped.aggregate(sy.Count(), sy.Max("id"), sy.Mean("id"))
    windows = F.window("at", "2 hours", slide)
    theirs = stream.withWatermark("at", "30 minutes").groupBy(windows, "page")
    theirs = theirs.agg(F.count("*").alias("count"), F.max("id"), F.avg("id"))
    assert theirs.columns == ours.columns
    assert [f.dataType for f in theirs.schema] == [f.dataType for f in ours.schema]
    expected = last_of(table(theirs, tmp_path / "theirs", mode), keys=2)
    assert expected == last_of(table(ours, tmp_path / "ours", mode), keys=2)
    assert len(expected) > 300


@pytest.mark.faults
@PLACEMENTS
def test_late_messages_are_dropped_as_spark_drops_them(spark, rows, tmp_path, placement):
    """The third file has rows of the first hours; only rows beyond the watermark are dropped."""
    for number in range(FILES):
        part = rows.where(f"id >= {number * EACH} AND id < {(number + 1) * EACH}")
        if number == 2:
            part = part.withColumn("at", F.expr("if(id % 4 < 2, timestamp_seconds(id), at)"))
        part.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = stream_of(spark, tmp_path / "in")
    hours = sy.Window("at", "1 hour", watermark="2 hours")
    ours = group(stream, tmp_path, placement, window=hours).aggregate(sy.Count())
    theirs = stream.withWatermark("at", "2 hours").groupBy(F.window("at", "1 hour"), "page")
    expected = last_of(table(theirs.count(), tmp_path / "theirs"), keys=2)
    assert expected == last_of(table(ours, tmp_path / "ours"), keys=2)
    counted = sum(count for (count,) in expected.values())
    assert FILES * EACH - EACH // 2 == counted, "only the late rows of the third file are dropped"


def test_periods_of_event_time_lose_no_rows_that_are_in_time(spark, tmp_path):
    """All workers send in the same micro-batch, so the watermark does not drop a rare key."""
    rows = [("rare", 0)] + [("often", minute) for minute in range(41)] + [("rare", 41)]
    (tmp_path / "in").mkdir()
    for first in range(0, len(rows), 6):
        pages, minutes = zip(*rows[first : first + 6], strict=True)
        moments = pa.array([m * 60_000_000 for m in minutes], pa.timestamp("us", "UTC"))
        made = pa.table({"page": pages, "id": minutes, "at": moments})
        pq.write_table(made, tmp_path / "in" / f"{first:03}.parquet")
        time.sleep(0.01)
    stream = stream_of(spark, tmp_path / "in")
    minutes = sy.Window("at", "1 minute", watermark="1 minute")
    ours = group(stream, tmp_path, sy.Delegated(period="10 minutes"), window=minutes)
    written = table(ours.aggregate(sy.Count()), tmp_path / "ours")
    found = {(window.start.minute, page): count for window, page, count in written}
    # Workers hold the last period until a later one begins.
    expected = {(minute, page): 1 for page, minute in rows if minute < 30}
    assert expected == {key: count for key, count in found.items() if key[0] < 30}
    assert set(found) < {(minute, page) for page, minute in rows}


def test_results_wait_for_the_end_of_a_period(spark, rows, files, tmp_path):
    """With two micro-batches in a period, the fifth waits for the sixth, also across restarts."""
    shutil.copytree(files, tmp_path / "in")

    def run():
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, sy.Delegated(period=2))
        counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
        return run_into(tmp_path / "out", counts, tmp_path / "checkpoint")

    written = run()
    assert truth(rows) == last_of(written)
    assert 2 == len([row for row in written if row[0] == "hot"])
    more = spark.createDataFrame([("hot", 1, None), ("new", 2, None)], SCHEMA).coalesce(1)
    more.write.mode("append").parquet(str(tmp_path / "in"))
    assert [] == run()
    more.write.mode("append").parquet(str(tmp_path / "in"))
    expected = truth(rows.union(more).union(more))
    assert {("hot",): expected["hot",], ("new",): (2, 4)} == last_of(run())
