"""A small stream, and the state store of delegated workers."""

import pytest

from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.streaming.running import EACH, FILES, kept, stream_of


@pytest.fixture(scope="module")
def state_in_rocksdb(spark):
    """Keep state in RocksDB, which delegated workers need."""
    with kept(spark, STATE_IN_ROCKSDB):
        for setting, value in STATE_IN_ROCKSDB.items():
            spark.conf.set(setting, value)
        yield


@pytest.fixture(scope="module")
def rows(spark):
    """Rows of which half have one key, some have a null key, and the others have 300 keys."""
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


@pytest.fixture
def stream(spark, files):
    """A stream of all files, one in each micro-batch."""
    return stream_of(spark, files)
