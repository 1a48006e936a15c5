"""What a stream is not asked for twice: one sentence before any work."""

import re

import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark import versions
from steelyard.spark.session import STATE_IN_ROCKSDB
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
        ({"placement": "push"}, "placement must be 'pull' or 'delegated', got 'push'"),
        ({"placement": "delegated"}, "control=, a folder that the driver and all"),
        ({"placement": "delegated", "workers": 3, "control": "c"}, "each of 3 workers needs a"),
        ({"placement": "delegated", "control": "c", "tasks_per_worker": 2}, "give virtual_workers"),
        ({"virtual_workers": 0}, "virtual_workers must be a whole number"),
        ({"virtual_workers": 2, "tasks_per_worker": 2}, "are the same here"),
        ({"capacities": [1, 1, 1, 1]}, "capacities are a hint for placement='delegated'"),
        ({"control": "ftp://host/path"}, "must be a folder on a local disk or a shared mount"),
        ({"control": "/proc/nowhere"}, "cannot be written"),
        ({"slot": "soon"}, "slot must be a length of time such as"),
        ({"period": "soon"}, "period must be a length of time such as .*, got 'soon'"),
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
    with pytest.raises(ValueError, match=r"column 'drawn' comes from rand\(\) behind a shuffle"):
        group(drawn, tmp_path, salt=["drawn"])
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
    provider, rocksdb = next(iter(STATE_IN_ROCKSDB.items()))
    spark.conf.unset(provider)
    with pytest.raises(ValueError, match="keep their state in RocksDB: set"):
        group(stream, tmp_path, "delegated")
    with pytest.raises(ValueError, match="Spark cannot merge itself are kept in RocksDB: set"):
        sy.group_by(stream, "page", workers=4).aggregate(sy.CollectSet("id"))
    spark.conf.set(provider, rocksdb)


def test_messages_that_cannot_be_told_apart_get_a_warning(stream, tmp_path):
    """Nothing but the key, behind a shuffle."""
    with pytest.warns(UserWarning, match="the messages of a key are all alike"):
        group(stream.select("page").repartition(2), tmp_path)


def test_who_keeps_state_in_python_is_warned_of_a_spark_that_leaks(
    spark, stream, tmp_path, monkeypatch
):
    """Once, at the line that asks for it; Spark's own aggregation does not leak."""
    major, minor, patch = map(int, spark.version.split("."))
    monkeypatch.setitem(versions.CLOSES_SOCKETS, (major, minor), patch + 1)
    leak = f"Spark {spark.version} leaks a socket"
    with pytest.warns(UserWarning, match=re.escape(leak)) as delegated:
        group(stream, tmp_path, "delegated").aggregate(sy.CollectSet("id"))
    with pytest.warns(UserWarning, match=re.escape(leak)) as pulled:
        sy.group_by(stream, "page", workers=4).aggregate(sy.CollectSet("id"))
    # Spark's Python leaves other warnings behind.
    files = [
        [it.filename for it in seen if leak in str(it.message)] for seen in (delegated, pulled)
    ]
    assert [[running.__file__], [__file__]] == files
    sy.group_by(stream, "page", workers=4).aggregate(sy.Count())  # a warning would be an error
