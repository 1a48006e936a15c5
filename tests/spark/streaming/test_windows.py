"""Event time and periods: as Spark has windows, and nothing is lost."""

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
def test_windows_are_sparks_own(stream, tmp_path, placement, mode, slide):
    """Event time, sliding too: the same rows as Spark's `window` gives, late ones dropped alike."""
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
    """Beyond the watermark, and only those: in the third file are some of the first hours."""
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
    assert FILES * EACH - EACH // 2 == counted, "those of the third file that are late, no others"


def test_periods_of_event_time_lose_nothing_that_is_in_time(spark, tmp_path):
    """A key that comes rarely is sent with the others, before its window is over."""
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
    # The last period is held until a later one begins.
    expected = {(minute, page): 1 for page, minute in rows if minute < 30}
    assert expected == {key: count for key, count in found.items() if key[0] < 30}
    assert set(found) < {(minute, page) for page, minute in rows}


def test_periods_hold_results_back_and_lose_nothing(spark, rows, files, tmp_path):
    """Two micro-batches a period: the fifth waits for the sixth, over restarts of the query."""
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
