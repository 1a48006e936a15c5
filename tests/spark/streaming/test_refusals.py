"""Bad arguments of `group_stream` get one sentence before any work starts."""

import re

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.session import STATE_IN_ROCKSDB
from steelyard.spark.versions import socket_leaks
from steelyard.spark.versions.supported import REAL_TIME, version_of
from tests.spark.streaming import running
from tests.spark.streaming.running import SCHEMA, group

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"placement": sy.Delegated()}, "pass `control`, a folder that the driver and all"),
        ({"placement": sy.Delegated(), "workers": 3, "control": "c"}, "each of 3 workers needs a"),
        ({"placement": sy.Delegated(capacities=[1]), "control": "c"}, "one number for each of 4"),
        ({"workers": 0}, "workers must be a whole number"),
        ({"routing": sy.Balance(buckets=3)}, "buckets must be at least the number of bins, 4"),
        ({"control": "ftp://host/path"}, "must be a folder on a local disk or a shared mount"),
        ({"control": "/proc/nowhere"}, "cannot be written"),
        ({"slot": "soon"}, "slot must be a length of time such as"),
        ({"slot": 0}, "slot must be a whole number"),
        (
            {"placement": sy.Delegated(period="1 hour"), "control": "c"},
            "a period of event time needs a window",
        ),
        ({"window": sy.Window("nope", "1 hour")}, "time: there is no column 'nope'"),
        ({"window": sy.Window("id", "1 hour")}, "column 'id' must be a timestamp, got bigint"),
        ({"arrived": "nope"}, "there is no column 'nope'"),
        ({"arrived": "id"}, "arrived: column 'id' must be a timestamp"),
        ({"routing": sy.Planner(3).plan}, "the plan is for 3 workers, not for 4"),
        (
            {"routing": sy.Planner(8).plan, "placement": sy.Pull(tasks_per_worker=3)},
            "the plan is for 8 bins, not for 4 workers of 3 tasks each",
        ),
        (
            {"routing": sy.Planner(4).plan, "placement": sy.Delegated(), "control": "c"},
            "a RoutingPlan needs placement=sy.Pull()",
        ),
        ({"routing": sy.Planner(4).plan, "weight": "id"}, "a RoutingPlan does not use weight"),
    ],
)
def test_bad_settings_get_one_sentence(stream, settings, sentence):
    """The call fails before a job starts."""
    with pytest.raises(ValueError, match=sentence):
        sy.group_stream(stream, "page", **{"workers": 4, **settings})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"placement": "delegated"}, r"must be sy.Pull\(\) or sy.Delegated\(\), got 'delegated'"),
        ({"window": "1 hour"}, r"window must be sy.Window\(time, length\), got '1 hour'"),
        ({"routing": "porc"}, "routing must be a Balance, a RoutingPlan or a Scheme, got 'porc'"),
    ],
)
def test_names_instead_of_objects_get_one_sentence(stream, settings, sentence):
    """Users may try names first."""
    with pytest.raises(TypeError, match=sentence):
        sy.group_stream(stream, "page", **{"workers": 4, **settings})


def test_the_wrong_function_for_a_frame_is_refused(stream, rows):
    """The error names the right function."""
    with pytest.raises(ValueError, match=r"frame is a stream; use sy.group_stream\(stream, ...\)"):
        sy.group_by(stream, "page", workers=4)
    with pytest.raises(ValueError, match=r"must be a streaming DataFrame; use sy.group_by"):
        sy.group_stream(rows, "page", workers=4)
    grouped = sy.group_by(rows, "page", workers=4)
    assert not hasattr(grouped, "history"), "only streams have a history"
    assert not hasattr(sy.group_stream(stream, "page", workers=4), "hot_keys")


def test_unsupported_streams_and_results_are_refused(spark, stream, tmp_path):
    """Among them are lost watermarks, sketches in windows, and shuffled streams."""
    marked = stream.withWatermark("at", "1 hour")
    with pytest.raises(ValueError, match="the stream has a watermark on 'at' already"):
        sy.group_stream(marked, "page", workers=4, window=sy.Window("at", "1 hour"))
    windowed = sy.group_stream(stream, "page", workers=4, window=sy.Window("at", "1 hour"))
    with pytest.raises(ValueError, match=r"can merge .* and collect_set.id. is not one of them"):
        windowed.aggregate(sy.CollectSet("id"))
    with pytest.raises(ValueError, match="two columns of the result would be called 'Window'"):
        windowed.aggregate(sy.Count().alias("Window"))
    with pytest.raises(ValueError, match="does not come directly from its source"):
        sy.group_stream(stream.repartition(2), "page", workers=4)
    with pytest.raises(ValueError, match="only for streams directly from files or Kafka"):
        group(stream.repartition(2), tmp_path, routing=sy.schemes.named("porc"))
    drawn = stream.repartition(2).withColumn("drawn", F.rand())
    with pytest.raises(ValueError, match=r"column 'drawn' comes from rand\(\) after a shuffle"):
        group(drawn, tmp_path, salt=["drawn"])
    periodic = group(stream, tmp_path, sy.Delegated(period=2))
    with pytest.raises(ValueError, match="`window` and `period` have no meaning"):
        periodic.map_arrow(lambda rows: rows, SCHEMA)
    with pytest.raises(ValueError, match="apply_in_pandas needs all rows of a key, which a stream"):
        group(stream, tmp_path).apply_in_pandas(lambda rows: rows, SCHEMA)
    once = sy.group_stream(stream, "page", workers=4)
    once.aggregate(sy.Count())
    with pytest.raises(ValueError, match="a grouping of a stream is for one result"):
        once.aggregate(sy.Count())
    provider, rocksdb = next(iter(STATE_IN_ROCKSDB.items()))
    spark.conf.unset(provider)
    other = "and this session uses another state store: set"
    with pytest.raises(ValueError, match=f"keep their state in RocksDB, {other}"):
        group(stream, tmp_path, "delegated")
    with pytest.raises(ValueError, match=f"Spark cannot merge itself are kept in RocksDB, {other}"):
        sy.group_stream(stream, "page", workers=4).aggregate(sy.CollectSet("id"))
    spark.conf.set(provider, rocksdb)


def test_write_stream_needs_a_result_and_a_checkpoint(stream, tmp_path):
    """A checkpoint that does not exist yet is accepted."""
    grouped = sy.group_stream(stream, "page", workers=4)
    with pytest.raises(ValueError, match="call aggregate or map_arrow first"):
        grouped.write_stream(stream, tmp_path)
    counts = grouped.aggregate(sy.Count())
    with pytest.raises(TypeError, match="checkpoint must be a path or an address, got None"):
        grouped.write_stream(counts, None)
    with pytest.raises(TypeError, match="results must be a Spark DataFrame, got str"):
        grouped.write_stream("counts", tmp_path)
    assert type(counts.writeStream) is type(grouped.write_stream(counts, tmp_path / "new"))


def test_equal_messages_of_a_key_get_a_warning(stream, tmp_path):
    """After a shuffle, a stream with only its key cannot split a hot key."""
    with pytest.warns(UserWarning, match="the messages of a key are equal"):
        group(stream.select("page").repartition(2), tmp_path)


def test_state_in_python_gets_a_warning_if_spark_leaks_sockets(
    spark, stream, tmp_path, monkeypatch
):
    """There is one warning at the line of the user; Spark's own aggregation does not leak."""
    major, minor, patch = map(int, spark.version.split("."))
    monkeypatch.setitem(socket_leaks.CLOSES_SOCKETS, (major, minor), patch + 1)
    leak = f"Spark {spark.version} leaks a socket"
    with pytest.warns(UserWarning, match=re.escape(leak)) as delegated:
        group(stream, tmp_path, "delegated").aggregate(sy.CollectSet("id"))
    with pytest.warns(UserWarning, match=re.escape(leak)) as pulled:
        sy.group_stream(stream, "page", workers=4).aggregate(sy.CollectSet("id"))
    # PySpark may raise other warnings.
    files = [
        [it.filename for it in seen if leak in str(it.message)] for seen in (delegated, pulled)
    ]
    assert [[running.__file__], [__file__]] == files
    sy.group_stream(stream, "page", workers=4).aggregate(sy.Count())  # a warning would be an error


def test_real_time_mode_needs_its_version_and_kafka(stream, tmp_path):
    """The error names the version of Spark, or the source, and the placements that can."""
    found = "reads files" if version_of(stream.sparkSession) >= REAL_TIME else "needs Spark 4.3"
    with pytest.raises(ValueError, match=rf"{found}.*use .*sy\.Pull\(\) or sy\.Delegated\(\)"):
        group(stream, tmp_path, sy.RealTime())
