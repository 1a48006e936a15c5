"""Workers with partial states that do not fit into one value of Spark's state."""

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.streaming.running import kept
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

KEYS = 10_000
"""Number of keys of 5 kB each, which is more than a worker may hold."""


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Two micro-batches: many new keys of one shard, then one of these keys."""
    folder = tmp_path_factory.mktemp("held") / "in"
    in_one_shard = F.pmod(F.xxhash64(large("id")), F.lit(64)) == 0
    ids = spark.range(0, 70 * KEYS, 1, 2).where(in_one_shard).limit(KEYS)
    ids.coalesce(1).write.parquet(str(folder))
    first = spark.read.parquet(str(folder)).limit(1)
    first.coalesce(1).write.mode("append").parquet(str(folder))
    return folder


def large(column):
    """Return a column with a long text for each number."""
    return F.rpad(F.col(column).cast("string"), 5000, "x")


def run_to_the_end(results, write, checkpoint):
    """Run a query over all files; fail if it does not end."""
    writer = results.writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(PATIENCE), "the query does not end"
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("settings", "sends_early"),
    [
        pytest.param({}, True, id="sent early"),
        pytest.param(
            {"window": sy.Window("at", "1 hour", watermark="1 hour")},
            False,
            id="held for the watermark",
        ),
    ],
)
def test_a_worker_with_large_states_is_exact(spark, folder, tmp_path, settings, sends_early):
    """It sends states before the end of the period only if no watermark follows."""
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    stream = stream.parquet(str(folder)).select(
        large("id").alias("page"), "id", F.timestamp_seconds("id").alias("at")
    )
    asked = {"workers": 1, "control": tmp_path / "control", **settings}
    asked["placement"] = sy.Delegated(period=2)
    found = []

    def write(batch, _):
        ids = F.regexp_extract("page", "^[0-9]+", 0).cast("long")
        rows = batch.select(ids.alias("id"), F.col("`count`")).collect()
        found.append({row["id"]: row["count"] for row in rows})

    with kept(spark, ["spark.sql.shuffle.partitions"]):
        spark.conf.set("spark.sql.shuffle.partitions", "1")
        results = sy.group_stream(stream, "page", **asked).aggregate(sy.Count())
        run_to_the_end(results, write, tmp_path / "checkpoint")
    first, second = found[:2]
    assert bool(first) == sends_early
    counts = {**first, **second}
    assert KEYS == len(counts)
    assert KEYS + 1 == sum(counts.values())


@pytest.mark.large
def test_a_long_period_with_many_new_keys_is_exact(spark, tmp_path):
    """40 micro-batches of 40,000 keys of 500 bytes, 800 MB in all, do not fit into an executor."""
    batches, each = 40, 40_000
    for number in range(batches):
        ids = spark.range(number * each, (number + 1) * each, 1, 1)
        ids.write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    page = F.rpad(F.col("id").cast("string"), 500, "x").alias("page")
    with kept(spark, ["spark.sql.shuffle.partitions"]):
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        grouped = sy.group_stream(
            stream.parquet(str(tmp_path / "in")).select(page, "id"),
            "page",
            workers=2,
            placement=sy.Delegated(period=batches),
            control=tmp_path / "control",
        )
        totals = grouped.aggregate(sy.Count(), sy.Max("id"))
        seen = []

        def write(batch, _):
            found = batch.agg(F.sum("`count`"), F.sum("`max(id)`"), F.count("page")).first()
            seen.append([value or 0 for value in found])

        run_to_the_end(totals, write, tmp_path / "checkpoint")
    keys = batches * each
    assert [keys, keys * (keys - 1) // 2, keys] == [
        sum(column) for column in zip(*seen, strict=True)
    ]
