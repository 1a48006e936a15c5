"""Consistent grouping on streams: exact results, workers that learn, and what goes wrong."""

import shutil
import threading
import time
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.control.history import Slot
from steelyard.spark.session import STATE_IN_ROCKSDB

pytestmark = [pytest.mark.streaming, pytest.mark.slow]

FILES, EACH = 4, 2000
SCHEMA = "page string, id long, at timestamp"
((PROVIDER, ROCKSDB),) = STATE_IN_ROCKSDB.items()

# Four workers on the two slots of the tests' Spark is meant.
ignore_few_slots = pytest.mark.filterwarnings("ignore:4 workers share 2 slots")


@pytest.fixture(scope="module", autouse=True)
def state_in_rocksdb(spark):
    """Workers that stay need it."""
    before = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, ROCKSDB)
    yield
    spark.conf.set(PROVIDER, before)


@pytest.fixture(scope="module")
def rows(spark):
    """Half of the rows have one key, some have none, the others 300."""
    return spark.range(0, FILES * EACH, 1, FILES).selectExpr(
        "if(id % 2 = 0, 'hot', if(id % 40 = 1, null, string(id % 300))) AS page",
        "id",
        "timestamp_seconds(id * 10) AS at",
    )


@pytest.fixture(scope="module")
def files(rows, tmp_path_factory):
    """A folder with one file for each micro-batch."""
    folder = str(tmp_path_factory.mktemp("stream") / "in")
    rows.write.parquet(folder)
    return folder


def stream_of(spark, folder):
    """A micro-batch for each file."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


@pytest.fixture
def stream(spark, files):
    """All files, one after the other."""
    return stream_of(spark, files)


def start(frame, checkpoint, mode="update", **options):
    """A query into a table of its own name, until all files are read."""
    name = f"t{uuid.uuid4().hex}"
    writer = frame.writeStream.outputMode(mode).format("memory").queryName(name)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.options(**options).start()


def table(frame, checkpoint, mode="update"):
    """What the query has written when it is done."""
    query = start(frame, checkpoint, mode)
    query.awaitTermination()
    return [tuple(row) for row in frame.sparkSession.table(query.name).collect()]


def run_into(out, frame, checkpoint, mode="update"):
    """The same into files, as the memory sink cannot be resumed: what this run has written."""
    before = set(Path(out).glob("*"))

    def write(batch, number):
        batch.write.mode("overwrite").parquet(f"{out}/{number}")

    writer = frame.writeStream.outputMode(mode).foreachBatch(write)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    try:
        writer.start().awaitTermination()
    finally:
        new = sorted(set(Path(out).glob("*")) - before)
        written = [row for folder in new for row in pq.read_table(folder).to_pylist()]
    return [tuple(row.values()) for row in written]


def last_of(written, keys=1):
    """For every key what was written last: with these aggregates, the largest."""
    best = {}
    for row in written:
        best[row[:keys]] = max(best.get(row[:keys], row[keys:]), row[keys:])
    return best


def truth(rows):
    """Counts and sums by key, from Spark itself."""
    found = rows.groupBy("page").agg(F.count("*"), F.sum("id")).collect()
    return {(row[0],): tuple(row[1:]) for row in found}


def heard(grouped, slots):
    """The history, once the reports of so many slots have arrived."""
    deadline = time.time() + 30
    while len(grouped.history()) < slots and time.time() < deadline:
        time.sleep(0.05)
    return grouped.history()


PLACEMENTS = pytest.mark.parametrize("placement", ["pull", "delegated"])


def group(stream, tmp_path, placement="pull", **settings):
    """Four workers that learn."""
    settings = {"workers": 4, "control": tmp_path / "control", **settings}
    return sy.group_by(stream, "page", placement=placement, **settings)


@PLACEMENTS
@ignore_few_slots
def test_counts_are_exact(rows, stream, tmp_path, placement):
    """Null keys too; in the history every message is there, and the workers are balanced."""
    grouped = group(stream, tmp_path, placement)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert ["page", "count", "sum(id)"] == counts.columns
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    slots = heard(grouped, FILES)
    assert [EACH] * FILES == [slot.messages for slot in slots]
    assert list(range(FILES)) == [slot.batch for slot in slots]
    assert ("hot", 0.5) == (slots[0].hot_keys[0].key, pytest.approx(slots[0].hot_keys[0].share))
    assert max(worker.share for slot in slots for worker in slot.workers) < 0.3
    if placement == "delegated":
        assert {400} == {sum(worker.virtual_workers for worker in s.workers) for s in slots}
    assert slots == [Slot.from_json(line) for line in grouped.control.history()]


@PLACEMENTS
@ignore_few_slots
def test_sketches_and_own_aggregators_merge(rows, stream, tmp_path, placement):
    """What Spark cannot merge; only keys that changed are written."""
    grouped = group(stream, tmp_path, placement)
    found = grouped.aggregate(sy.Count(), sy.Sum("id"), sy.CollectSet("id"))
    written = table(found, tmp_path / "checkpoint")
    best = last_of([row[:3] for row in written])
    assert truth(rows) == best
    largest = max((row[3] for row in written if row[0] == "hot"), key=len)
    assert list(range(0, FILES * EACH, 2)) == sorted(largest)
    assert FILES == len([row for row in written if row[0] == "hot"])


@PLACEMENTS
@ignore_few_slots
def test_functions_run_at_workers(stream, tmp_path, placement):
    """Every row once, whichever worker has it."""

    def numbers(rows: pa.Table) -> pa.Table:
        assert rows.column_names == ["page", "id", "at"]
        return pa.table({"number of": rows["id"], "x.y": pa.nulls(rows.num_rows, pa.string())})

    grouped = group(stream, tmp_path, placement)
    found = grouped.map_arrow(numbers, "`number of` long, `x.y` string")
    assert ["number of", "x.y"] == found.columns
    written = table(found, tmp_path / "checkpoint", "append")
    assert list(range(FILES * EACH)) == sorted(row[0] for row in written)


@pytest.mark.parametrize(
    ("placement", "mode", "slide"),
    [("pull", "append", "1 hour"), ("delegated", "update", None), ("delegated", "append", None)],
)
@ignore_few_slots
def test_windows_are_sparks_own(stream, tmp_path, placement, mode, slide):
    """Event time, sliding too: the same rows as Spark's `window` gives, late ones dropped alike."""
    grouped = group(
        stream,
        tmp_path,
        placement,
        time="at",
        window="2 hours",
        slide=slide,
        watermark="30 minutes",
    )
    ours = grouped.aggregate(sy.Count(), sy.Max("id"), sy.Mean("id"))
    windows = F.window("at", "2 hours", slide)
    theirs = stream.withWatermark("at", "30 minutes").groupBy(windows, "page")
    theirs = theirs.agg(F.count("*").alias("count"), F.max("id"), F.avg("id"))
    assert theirs.columns == ours.columns
    assert [f.dataType for f in theirs.schema] == [f.dataType for f in ours.schema]
    expected = last_of(table(theirs, tmp_path / "theirs", mode), keys=2)
    assert expected == last_of(table(ours, tmp_path / "ours", mode), keys=2)
    assert len(expected) > 300


@PLACEMENTS
@ignore_few_slots
def test_late_messages_are_dropped_as_spark_drops_them(spark, rows, tmp_path, placement):
    """Beyond the watermark, and only those: in the third file are some of the first hours."""
    for number in range(FILES):
        part = rows.where(f"id >= {number * EACH} AND id < {(number + 1) * EACH}")
        if number == 2:
            part = part.withColumn("at", F.expr("if(id % 4 < 2, timestamp_seconds(id), at)"))
        part.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = stream_of(spark, tmp_path / "in")
    asked = {"time": "at", "window": "1 hour", "watermark": "2 hours"}
    ours = group(stream, tmp_path, placement, **asked).aggregate(sy.Count())
    theirs = stream.withWatermark("at", "2 hours").groupBy(F.window("at", "1 hour"), "page")
    expected = last_of(table(theirs.count(), tmp_path / "theirs"), keys=2)
    assert expected == last_of(table(ours, tmp_path / "ours"), keys=2)
    counted = sum(count for (count,) in expected.values())
    assert FILES * EACH - EACH // 2 == counted, "those of the third file that are late, no others"


def test_a_clock_that_is_behind_shows_no_latency(stream, rows, tmp_path):
    """Messages that seem to come from the future are counted like others."""
    soon = stream.withColumn("came", F.timestamp_seconds(F.lit(time.time() + 10_000)))
    grouped = sy.group_by(soon, "page", workers=2, arrived="came")
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    assert all(0 < slot.p99 < 0.001 for slot in heard(grouped, FILES))


def test_all_is_told_in_complete_mode(rows, stream, tmp_path):
    """Without a control path: planned while it is read, and a history all the same."""
    grouped = sy.group_by(stream, "page", workers=4)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    query = start(counts, tmp_path / "checkpoint", "complete")
    query.awaitTermination()
    found = counts.sparkSession.table(query.name).collect()
    assert truth(rows) == {(row[0],): tuple(row[1:]) for row in found}
    assert FILES == len(heard(grouped, FILES))


@pytest.mark.parametrize("placement", ["pull", "delegated"])
@ignore_few_slots
def test_types_are_sparks_own(spark, tmp_path, placement):
    """Keys and results of types that Arrow and Spark have different names for."""
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
    grouped = sy.group_by(
        stream, *keys, workers=4, placement=placement, control=tmp_path / "control"
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


@ignore_few_slots
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
    asked = {"time": "at", "window": "1 minute", "watermark": "1 minute"}
    ours = group(stream, tmp_path, "delegated", period="10 minutes", **asked)
    written = table(ours.aggregate(sy.Count()), tmp_path / "ours")
    found = {(window.start.minute, page): count for window, page, count in written}
    # The last period is held until a later one begins.
    expected = {(minute, page): 1 for page, minute in rows if minute < 30}
    assert expected == {key: count for key, count in found.items() if key[0] < 30}
    assert set(found) < {(minute, page) for page, minute in rows}


@ignore_few_slots
def test_what_a_restart_may_change(spark, rows, files, tmp_path):
    """The number of buckets, as results do not depend on it; not the number of those who stay."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    written = []
    for part, buckets in zip(parts, (8192, 4096, 8192, 512), strict=True):
        shutil.copy(part, tmp_path / "in" / part.name)
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, buckets=buckets)
        found = grouped.aggregate(sy.Count(), sy.CollectSet("id"))
        written += run_into(tmp_path / "out", found, tmp_path / "checkpoint")
    counts = {key: count for key, (count, _) in truth(rows).items()}
    assert counts == {key: row[0] for key, row in last_of(written).items()}
    stays = group(stream_of(spark, files), tmp_path / "b", "delegated").aggregate(sy.Count())
    table(stays, tmp_path / "other checkpoint")
    with pytest.raises(ValueError, match="is of 4 delegated workers, and their number is fixed"):
        group(stream_of(spark, files), tmp_path / "b", "delegated", workers=3)


@ignore_few_slots
def test_periods_hold_results_back_and_lose_nothing(spark, rows, files, tmp_path):
    """Two micro-batches a period: the fifth waits for the sixth, over restarts of the query."""
    shutil.copytree(files, tmp_path / "in")

    def run():
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, "delegated", period=2)
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


@ignore_few_slots
def test_a_restart_goes_on_and_lost_control_files_cost_nothing(spark, rows, files, tmp_path):
    """Checkpoint and control path are resumed; then the control path is gone."""
    (tmp_path / "in").mkdir()
    parts = sorted(Path(files).glob("*.parquet"))
    written = []
    for number, part in enumerate(parts):
        shutil.copy(part, tmp_path / "in" / part.name)
        if number == 2:
            shutil.rmtree(tmp_path / "control")
        grouped = group(stream_of(spark, tmp_path / "in"), tmp_path, "delegated")
        learned = grouped.controller.version.plan is not None
        assert learned == (number in (1, 3))
        counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
        written += run_into(tmp_path / "out", counts, tmp_path / "checkpoint")
        heard(grouped, 1)
    assert truth(rows) == last_of(written)


@PLACEMENTS
@ignore_few_slots
def test_control_files_may_be_deleted_while_it_runs(rows, stream, tmp_path, placement):
    """All of them, again and again."""
    is_over = threading.Event()

    def delete():
        while not is_over.wait(0.2):
            shutil.rmtree(tmp_path / "control", ignore_errors=True)

    deleting = threading.Thread(target=delete)
    grouped = group(stream, tmp_path, placement)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    deleting.start()
    try:
        written = table(counts, tmp_path / "checkpoint")
    finally:
        is_over.set()
        deleting.join()
    assert truth(rows) == last_of(written)


def test_two_queries_on_one_control_path_are_refused(stream, rows, tmp_path):
    """In one sentence, which reaches whoever started the second; the first goes on."""
    owner = tmp_path / "control" / "owner"
    first = group(stream, tmp_path).aggregate(sy.Count(), sy.Sum("id"))
    writer = first.writeStream.outputMode("update").format("memory").queryName("first_of_two")
    running = writer.option("checkpointLocation", str(tmp_path / "first")).start()
    try:
        deadline = time.time() + 60
        while not owner.exists() and time.time() < deadline:
            time.sleep(0.05)
        second = group(stream, tmp_path).aggregate(sy.Count())
        sentence = f"is in use by the query {running.id}; give each query a path"
        with pytest.raises(Exception, match=sentence):
            table(second, tmp_path / "second")
        running.processAllAvailable()
        assert running.isActive
    finally:
        running.stop()
    written = [tuple(row) for row in first.sparkSession.table("first_of_two").collect()]
    assert truth(rows) == last_of(written)
    deadline = time.time() + 30
    while owner.exists() and time.time() < deadline:
        time.sleep(0.05)
    assert not owner.exists(), "a query that ended leaves the path to others"


@PLACEMENTS
@ignore_few_slots
def test_a_poison_row_is_named_and_mended(rows, stream, tmp_path, placement):
    """The message tells the worker and the bucket; a restart with a better function goes on."""

    def fragile(rows: pa.Table) -> pa.Table:
        if 4711 in rows["id"].to_pylist():
            raise ValueError("cannot read this")
        return rows.select(["id"])

    poison = rows.where("id = 4711").selectExpr("pmod(xxhash64(page), 8192)").first()[0]
    failing = group(stream, tmp_path, placement).map_arrow(fragile, "id long")
    sentence = rf"worker \d failed in micro-batch \d on rows of bucket {poison} of keys: ValueError"
    with pytest.raises(Exception, match=sentence):
        run_into(tmp_path / "out", failing, tmp_path / "checkpoint", "append")
    mended = group(stream, tmp_path, placement).map_arrow(lambda t: t.select(["id"]), "id long")
    run_into(tmp_path / "out", mended, tmp_path / "checkpoint", "append")
    folders = (tmp_path / "out").glob("*")
    ids = [i for folder in folders for i in pq.read_table(folder)["id"].to_pylist()]
    assert list(range(FILES * EACH)) == sorted(ids)


def test_weights_schemes_and_plans(stream, rows, tmp_path):
    """As for frames that end."""
    weighed = sy.group_by(stream.withColumn("w", F.lit(2.5)), "page", workers=4, weight="w")
    assert truth(rows) == last_of(
        table(weighed.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "weighed")
    )
    schemed = group(stream, tmp_path, scheme=sy.schemes.named("porc"))
    assert truth(rows) == last_of(
        table(schemed.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "schemed")
    )
    shares = [worker.share for worker in heard(schemed, FILES)[-1].workers]
    assert max(shares) < 0.3
    plan = sy.plan(rows, "page", workers=4)
    planned = sy.group_by(stream, "page", workers=4, plan=plan)
    assert truth(rows) == last_of(
        table(planned.aggregate(sy.Count(), sy.Sum("id")), tmp_path / "planned")
    )


def test_latencies_are_told_from_the_time_of_arrival(stream, tmp_path):
    """A column of times, or Kafka's own."""
    now = stream.withColumn("came", F.timestamp_seconds(F.lit(time.time() - 100)))
    grouped = sy.group_by(now, "page", workers=2, arrived="came")
    table(grouped.aggregate(sy.Count()), tmp_path / "checkpoint")
    slot = heard(grouped, 1)[0]
    assert 90 < slot.p50 <= slot.p99 < 250
    kafka = stream.selectExpr("'t' AS topic", "1 AS partition", "id AS offset", "at AS timestamp")
    grouped = sy.group_by(kafka.withColumn("key", F.lit("k")), "key", workers=2)
    assert ("timestamp", ("partition", "offset")) == (grouped.arrived, grouped.salts)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"placement": "push"}, "placement must be 'pull' or 'delegated', got 'push'"),
        ({"placement": "delegated"}, "placement='delegated' needs a control path"),
        ({"placement": "delegated", "workers": 3, "control": "c"}, "each of 3 workers needs a"),
        ({"placement": "delegated", "control": "c", "tasks_per_worker": 2}, "give virtual_workers"),
        ({"virtual_workers": 0}, "virtual_workers must be a whole number"),
        ({"virtual_workers": 2, "tasks_per_worker": 2}, "are the same here"),
        ({"capacities": [1, 1, 1, 1]}, "capacities are a hint for placement='delegated'"),
        ({"control": "s3://bucket/path"}, "must be a folder on a local disk or a shared mount"),
        ({"control": "/proc/nowhere"}, "cannot be written"),
        ({"slot": "soon"}, "slot must be a length of time such as"),
        ({"slot": 0}, "slot must be a whole number"),
        ({"period": 2}, "period is for placement='delegated'"),
        ({"window": "1 hour"}, "window needs time"),
        ({"time": "at"}, "time needs a window"),
        ({"watermark": "1 hour"}, "watermark needs a window"),
        ({"time": "id", "window": "1 hour"}, "column 'id' must be a timestamp, got bigint"),
        ({"time": "at", "window": "1 hour", "slide": "40 minutes"}, "whole number of slides"),
        ({"arrived": "nope"}, "there is no column 'nope'"),
        ({"arrived": "id"}, "arrived: column 'id' must be a timestamp"),
        ({"whole_light_keys": True}, "whole_light_keys needs all rows of a key"),
        ({"plan": sy.Planner(3).plan}, "the plan is for 3 bins, not for 4 workers of 1 tasks"),
    ],
)
def test_bad_settings_get_one_sentence(stream, settings, sentence):
    """Before anything starts."""
    with pytest.raises(ValueError, match=sentence):
        sy.group_by(stream, "page", **{"workers": 4, **settings})


@ignore_few_slots
def test_what_a_stream_cannot_do_is_refused(spark, stream, rows, tmp_path):
    """Watermarks that would be lost, sketches in windows, streams that were shuffled."""
    marked = stream.withWatermark("at", "1 hour")
    with pytest.raises(ValueError, match="the stream has a watermark on 'at' already"):
        sy.group_by(marked, "page", workers=4, time="at", window="1 hour")
    windowed = sy.group_by(stream, "page", workers=4, time="at", window="1 hour")
    with pytest.raises(ValueError, match=r"Spark itself can merge .* and collect_set.id. is none"):
        windowed.aggregate(sy.CollectSet("id"))
    with pytest.raises(ValueError, match="does not come straight from its source"):
        sy.group_by(stream.repartition(2), "page", workers=4)
    with pytest.raises(ValueError, match="which only a stream straight from files or Kafka keeps"):
        group(stream.repartition(2), tmp_path, scheme=sy.schemes.named("porc"))
    drawn = stream.repartition(2).withColumn("drawn", F.rand())
    with pytest.raises(ValueError, match="made with rand behind a shuffle"):
        group(drawn, tmp_path)
    periodic = group(stream, tmp_path, "delegated", period=2)
    with pytest.raises(ValueError, match="window and period are for aggregate"):
        periodic.map_arrow(lambda rows: rows, SCHEMA)
    with pytest.raises(ValueError, match="control is for streams, and this frame is none"):
        sy.group_by(rows, "page", workers=4, control=tmp_path)
    with pytest.raises(ValueError, match="only a stream has a history"):
        sy.group_by(rows, "page", workers=4).history()
    once = sy.group_by(stream, "page", workers=4)
    once.aggregate(sy.Count())
    with pytest.raises(ValueError, match="a grouping of a stream is for one result"):
        once.aggregate(sy.Count())
    spark.conf.unset(PROVIDER)
    with pytest.raises(ValueError, match="keep their state in RocksDB: set"):
        group(stream, tmp_path, "delegated")
    spark.conf.set(PROVIDER, ROCKSDB)


def test_messages_that_cannot_be_told_apart_get_a_warning(stream, tmp_path):
    """Nothing but the key, behind a shuffle."""
    with pytest.warns(UserWarning, match="the messages of a key are all alike"):
        group(stream.select("page").repartition(2), tmp_path)


def test_a_shuffled_stream_is_routed_by_content(rows, stream, tmp_path):
    """With a control path; every key is whole until the first slot has been counted."""
    grouped = group(stream.repartition(2), tmp_path)
    counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
    assert truth(rows) == last_of(table(counts, tmp_path / "checkpoint"))
    slots = heard(grouped, FILES)
    assert max(worker.share for worker in slots[0].workers) >= 0.5
