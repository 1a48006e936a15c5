"""Consistent grouping on streams: exact results and balanced workers."""

import time

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.control.history import Slot
from tests.spark.streaming.placing import placed
from tests.spark.streaming.running import (
    EACH,
    FILES,
    PLACEMENTS,
    calm_shares,
    group,
    history_of,
    last_of,
    start,
    table,
    truth,
)
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]


@PLACEMENTS
def test_counts_are_exact(rows, stream, tmp_path, placement):
    """Null keys are counted too; the history has every message, and the workers are balanced."""
    grouped = group(stream, tmp_path, placement)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert ["page", "count", "sum(id)"] == counts.columns
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    slots = history_of(grouped, FILES)
    assert [EACH] * FILES == [slot.messages for slot in slots]
    assert list(range(FILES)) == [slot.batch for slot in slots]
    assert ("hot", 0.5) == (slots[0].hot_keys[0].key, pytest.approx(slots[0].hot_keys[0].share))
    assert max(calm_shares(slots)) < 0.3
    if placement == "delegated":
        assert {400} == {sum(worker.virtual_workers for worker in s.workers) for s in slots}
    assert slots == [Slot.from_json(line) for line in grouped.control.history()]


@PLACEMENTS
def test_aggregators_that_spark_cannot_merge_are_exact(rows, stream, tmp_path, placement):
    """Only the results of changed keys are written."""
    grouped = group(stream, tmp_path, placement)
    found = grouped.aggregate(sy.Count(), sy.Sum("id"), sy.CollectSet("id"))
    written = table(found, tmp_path / "checkpoint")
    best = last_of([row[:3] for row in written])
    assert truth(rows) == best
    largest = max((row[3] for row in written if row[0] == "hot"), key=len)
    assert list(range(0, FILES * EACH, 2)) == sorted(largest)
    assert FILES == len([row for row in written if row[0] == "hot"])


@PLACEMENTS
def test_functions_run_on_workers(stream, tmp_path, placement):
    """Each row is processed once, at any worker."""

    def numbers(rows: pa.Table) -> pa.Table:
        assert rows.column_names == ["page", "id", "at"]
        return pa.table({"number of": rows["id"], "x.y": pa.nulls(rows.num_rows, pa.string())})

    grouped = group(stream, tmp_path, placement)
    found = grouped.map_arrow(numbers, "`number of` long, `x.y` string")
    assert ["number of", "x.y"] == found.columns
    written = table(found, tmp_path / "checkpoint", "append")
    assert list(range(FILES * EACH)) == sorted(row[0] for row in written)


@PLACEMENTS
def test_a_pandas_function_gets_every_row_once(stream, tmp_path, placement):
    """Times pass through pandas without a change, nulls too."""

    def same(rows):
        return rows[["at", "page", "id"]]

    found = group(stream, tmp_path, placement).map_pandas(
        same, "page string, id long, at timestamp"
    )
    written = table(found, tmp_path / "checkpoint", "append")
    assert list(range(FILES * EACH)) == sorted(row[1] for row in written)
    assert all(row[2].timestamp() == 10 * row[1] for row in written)
    assert {None} == {row[0] for row in written if row[1] % 40 == 1}


def test_complete_mode_writes_all_results(rows, stream, tmp_path):
    """Without a control path sources plan from the rows that they read; there is a history, too."""
    grouped = sy.group_stream(stream, "page", workers=4)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    query = start(counts, tmp_path / "checkpoint", "complete")
    query.awaitTermination()
    found = counts.sparkSession.table(query.name).collect()
    assert truth(rows) == {(row[0],): tuple(row[1:]) for row in found}
    assert FILES == len(history_of(grouped, FILES))


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_results_have_the_types_of_spark(spark, tmp_path, placement):
    """The types of these keys and results have different names in Arrow and in Spark."""
    numbers = spark.range(0, 600, 1, 1).selectExpr(
        "id % 3 = 0 AS yes",
        "timestamp_ntz '2026-01-01 00:00:00' + make_dt_interval(int(id % 4)) AS naive",
        "date_add(date '2026-01-01', int(id % 2)) AS day",
        "cast(id % 5 AS decimal(9, 2)) AS price",
        "cast(string(id % 2) AS binary) AS raw",
        "if(id % 7 = 0, null, cast(id / 10000 AS decimal(18, 4))) AS cost",
        "timestamp_ntz '2026-01-01 00:00:00' + make_dt_interval(0, int(id)) AS when",
    )
    numbers.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(numbers.schema).parquet(str(tmp_path / "in"))
    keys = ["yes", "naive", "day", "price", "raw"]
    grouped = sy.group_stream(
        stream, *keys, workers=4, placement=placed(placement), control=tmp_path / "control"
    )
    results = [sy.Count("cost"), sy.Sum("cost"), sy.Mean("cost"), sy.Min("when"), sy.Max("cost")]
    ours = grouped.aggregate(*results)
    theirs = numbers.groupBy(*keys).agg(
        F.count("cost"), F.sum("cost"), F.avg("cost"), F.min("when"), F.max("cost")
    )
    kinds = [field.dataType for field in theirs.schema]
    assert kinds == [field.dataType for field in ours.schema]
    assert sorted(map(str, theirs.collect())) == sorted(
        map(str, spark.createDataFrame(table(ours, tmp_path / "cp"), theirs.schema).collect())
    )


def test_delegation_by_other_rules(stream, rows, tmp_path):
    """Results do not depend on the rules; here they are the paper's, with initial capacities."""
    rules = sy.Delegated(virtual_workers=20, capacities=[1, 1, 1, 3], rules=sy.PaperRules())
    grouped = group(stream, tmp_path, rules)
    assert truth(rows) == last_of(
        table(grouped.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "checkpoint")
    )
    first = history_of(grouped, FILES)[0]
    assert 80 == sum(worker.virtual_workers for worker in first.workers)
    assert 3 == max(range(4), key=lambda worker: first.workers[worker].virtual_workers)


def test_results_are_exact_with_weights_schemes_and_plans(stream, rows, tmp_path):
    """Streams accept the same routing as DataFrames that do not stream."""
    weighed = sy.group_stream(stream.withColumn("w", F.lit(2.5)), "page", workers=4, weight="w")
    assert truth(rows) == last_of(
        table(weighed.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "weighed")
    )
    schemed = group(stream, tmp_path, routing=sy.schemes.named("porc"))
    assert truth(rows) == last_of(
        table(schemed.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "schemed")
    )
    shares = [worker.share for worker in history_of(schemed, FILES)[-1].workers]
    assert max(shares) < 0.3
    assert not weighed.controller.foresees, "weights are not numbers of messages"
    assert not schemed.controller.foresees, "sources do not follow a plan"
    plan = sy.plan(rows, "page", workers=4)
    planned = sy.group_stream(stream, "page", workers=4, routing=plan)
    assert truth(rows) == last_of(
        table(planned.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "planned")
    )


def test_latencies_are_measured_from_the_time_of_arrival(stream, tmp_path):
    """The times are in a column that the user names, or in Kafka's column."""
    now = stream.withColumn("came", F.timestamp_seconds(F.lit(time.time() - 100)))
    grouped = sy.group_stream(now, "page", workers=2, arrived="came")
    table(grouped.aggregate(sy.Count()), tmp_path / "checkpoint")
    slot = history_of(grouped, 1)[0]
    assert 90 < slot.p50 <= slot.p99 < 100 + PATIENCE
    kafka = stream.selectExpr("'t' AS topic", "1 AS partition", "id AS offset", "at AS timestamp")
    grouped = sy.group_stream(kafka.withColumn("key", F.lit("k")), "key", workers=2)
    assert ("timestamp", ("partition", "offset")) == (
        grouped._source.arrived,
        grouped._source.salts,
    )


def test_a_clock_that_is_behind_shows_no_latency(stream, rows, tmp_path):
    """Messages with an arrival time in the future are counted like all others."""
    soon = stream.withColumn("came", F.timestamp_seconds(F.lit(time.time() + 10_000)))
    grouped = sy.group_stream(soon, "page", workers=2, arrived="came")
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    assert all(0 < slot.p99 < 0.001 for slot in history_of(grouped, FILES))


def test_a_shuffled_stream_is_routed_by_content(rows, stream, tmp_path):
    """With a control path, no key is split before the first slot has been counted."""
    grouped = group(stream.repartition(2), tmp_path)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    slots = history_of(grouped, FILES)
    assert max(worker.share for worker in slots[0].workers) >= 0.5
