"""Queries that continue from their checkpoints with another definition or another period."""

import re
import shutil
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.aggregators.describing import described
from steelyard.hashing import hash_keys
from steelyard.spark.streaming.hidden_columns import SHARDS
from steelyard.spark.streaming.state_schema import explanation_of
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
MIN, MAX_OF_TWIN = "Min.column='id'.", "Max.column='twin'."


def reason_of(failure):
    """Return the sentence that explains a failure of Spark; else the text of the failure."""
    return explanation_of(str(failure.value)) or str(failure.value)


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
                    f"{COUNT}, {SUM}, and .* has {COUNT}, {MAX}:",
                ),
                (
                    "page",
                    [sy.Sum("id"), sy.Count()],
                    f"{COUNT}, {SUM}, and .* has {SUM}, {COUNT}:",
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
                    f"{COUNT}, {SUM}, and .* has {COUNT}, {MAX}:",
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
    """The error names the old and the new definition; the same result continues and is exact."""
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
    if settings:  # without the control path, the state has the definition
        until(lambda: not (tmp_path / "control" / "owner").exists())
        shutil.rmtree(tmp_path / "control", ignore_errors=True)
    for key, other, sentence in others:
        with pytest.raises(Exception, match="a query with") as failure:
            run(key, other, "refused")
        assert re.search(f"the checkpoint is of a query with the .*{sentence}", reason_of(failure))
    written += run("page", aggregators, "out")
    expected = truth(rows.where(f"id < {2 * EACH}"))
    assert expected == last_of([row[:3] for row in written])


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param(
            ("page", [sy.Min("id")]),
            ("page", [sy.Max("id")]),
            f"aggregators {MIN}, and this query has {MAX}",
            id="another aggregator",
        ),
        pytest.param(
            ("page", [sy.Max("id"), sy.Max("twin")]),
            ("page", [sy.Max("twin"), sy.Max("id")]),
            f"aggregators {MAX}, {MAX_OF_TWIN}, and this query has {MAX_OF_TWIN}, {MAX}",
            id="another order",
        ),
        pytest.param(
            ("page", [sy.Count()]),
            ("other", [sy.Count()]),
            "keys page string, and this query has other string",
            id="a key with other values",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["update", "complete", "append"])
def test_another_result_is_refused_without_a_control_path(
    spark, files, tmp_path, caplog, mode, before, after, sentence
):
    """The query fails before it writes a result; its error shows both definitions."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    window = sy.Window("at", "1 hour", watermark="1 minute") if mode == "append" else None

    def run(part, key, aggregators, out):
        shutil.copy(part, tmp_path / "in" / part.name)
        stream = stream_of(spark, tmp_path / "in").withColumn("twin", F.col("id"))
        stream = stream.withColumn("other", F.concat(F.lit("other "), "page"))
        grouped = sy.group_stream(stream, key, workers=4, window=window)
        result = grouped.aggregate(*aggregators)
        return run_into(tmp_path / out, result, tmp_path / "checkpoint", mode)

    assert run(parts[0], *before, "out")
    with pytest.raises(Exception, match="the state belongs to a query with") as failure:
        run(parts[1], *after, "refused")
    assert re.search(f"the checkpoint is of a query with the {sentence}:", reason_of(failure))
    until(lambda: re.search(sentence, caplog.text))
    assert not (tmp_path / "refused").exists()
    assert run(parts[2], *before, "out")


NATIVE, IN_PYTHON = (sy.Count(), sy.Sum("id")), (sy.CollectSet("id"), sy.CollectSet("twin"))
DELEGATED = {"placement": sy.Delegated(), "control": "control"}


@pytest.mark.parametrize(
    ("aggregators", "settings"),
    [
        pytest.param(NATIVE, {}, id="pull"),
        pytest.param(NATIVE, {"control": "control"}, id="pull with a control path"),
        pytest.param(NATIVE, DELEGATED, id="delegated"),
        pytest.param(IN_PYTHON, {}, id="pull in shards"),
        pytest.param(IN_PYTHON, DELEGATED, id="delegated in shards"),
    ],
)
def test_write_stream_refuses_another_result_before_the_query_starts(
    spark, files, tmp_path, aggregators, settings
):
    """The error is one sentence. A query with the same result continues, also after a failure."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    stream = stream_of(spark, tmp_path / "in").withColumn("twin", F.col("page"))
    settings = {"workers": 4, **settings}
    if "control" in settings:
        settings["control"] = tmp_path / settings["control"]

    def writer_of(key, aggregators):
        grouped = sy.group_stream(stream, key, **settings)
        results = grouped.aggregate(*aggregators).withColumn("more", F.lit(1))
        return results, partial(grouped.write_stream, checkpoint=tmp_path / "checkpoint")

    def rows_of_run(part, writer):
        shutil.copy(part, tmp_path / "in" / part.name)
        writer = writer.outputMode("update").format("noop").trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    def refusal_of(key, aggregators):
        results, write = writer_of(key, aggregators)
        with pytest.raises(ValueError, match="a query with") as failure:
            write(results)
        return str(failure.value)

    results, write = writer_of("page", aggregators)
    assert EACH == rows_of_run(parts[0], write(results))
    was, swapped = (", ".join(map(described, a)) for a in (aggregators, aggregators[::-1]))
    sentence = (
        "the checkpoint is of a query with the {}, and this query has {}: keep them as they were, "
        "or use a new checkpoint"
    )
    assert sentence.format(f"aggregators {was}", swapped) == refusal_of("page", aggregators[::-1])
    assert sentence.format("keys page string", "twin string") == refusal_of("twin", aggregators)
    other, _ = writer_of("twin", aggregators)
    writer = other.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(Exception, match="a query with"):
        rows_of_run(parts[1], writer)
    results, write = writer_of("page", aggregators)
    assert 2 * EACH == rows_of_run(parts[2], write(results))
    assert sentence.format("keys page string", "twin string") == refusal_of("twin", aggregators)


def test_write_stream_accepts_one_of_several_groupings(spark, files, tmp_path):
    """The checkpoint of a query with two groupings has two definitions."""
    stream = stream_of(spark, files).withColumn("twin", F.col("page"))

    def writer_of(*keys):
        groupings = [sy.group_stream(stream, key, workers=2) for key in keys]
        first, second = (g.aggregate(sy.CollectSet("id")).toDF("key", "ids") for g in groupings)
        return groupings[0].write_stream(first.union(second), tmp_path / "checkpoint")

    writer = writer_of("page", "twin").outputMode("update").format("noop")
    writer.trigger(availableNow=True).start().awaitTermination()
    writer_of("page", "twin")
    writer_of("twin", "page")  # the order is compared by the tasks
    with pytest.raises(ValueError, match=r"keys .*, and this query has id bigint: keep them"):
        writer_of("id", "page")


def test_a_shard_without_keys_refuses_another_key(spark, tmp_path):
    """Each of two keys has one value, and these values are in different shards."""
    (tmp_path / "in").mkdir()
    assert 2 == len(set(hash_keys(["first", "second"]) % SHARDS))

    def run(number, key):
        rows = pa.table({"page": ["first"], "other": ["second"], "id": [number]})
        pq.write_table(rows, tmp_path / "in" / f"{number}.parquet")
        reader = spark.readStream.schema("page string, other string, id long")
        stream = reader.parquet(str(tmp_path / "in"))
        result = sy.group_stream(stream, key, workers=2).aggregate(sy.CollectSet("id"))
        return run_into(tmp_path / "out", result, tmp_path / "checkpoint")

    assert [("first", [0])] == run(0, "page")
    with pytest.raises(Exception, match="keys page string, and this query has other string"):
        run(1, "other")
    ((page, ids),) = run(2, "page")
    assert ("first", [0, 1, 2]) == (page, sorted(ids))


def test_held_states_are_sent_if_the_period_changes(spark, tmp_path):
    """From a minute of event time to an hour, windows equal those of Spark, and none is late."""
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
    assert {0, 1} == {row[0]["start"].minute for row in written}, "in the first micro-batch"
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
