"""Small streams, queries over them, and the expected results."""

import itertools
import uuid
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from tests.spark.streaming.placing import placed
from tests.waiting import until

FILES, EACH = 4, 2000
SCHEMA = "page string, id long, at timestamp"

PLACEMENTS = pytest.mark.parametrize("placement", ["pull", "delegated"])


@contextmanager
def kept(spark, names):
    """Restore these settings of the session at the end of the block."""
    before = {name: spark.conf.get(name, None) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


def stream_of(spark, folder):
    """Return a stream with a micro-batch for each file in a folder."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def start(frame, checkpoint, mode="update", **options):
    """Start a query that writes to a table of its own name and ends after the last file."""
    name = f"t{uuid.uuid4().hex}"
    writer = frame.writeStream.outputMode(mode).format("memory").queryName(name)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    return writer.options(**options).start()


def table(frame, checkpoint, mode="update"):
    """Run a query to its end, and return the rows that it has written."""
    query = start(frame, checkpoint, mode)
    query.awaitTermination()
    return [tuple(row) for row in frame.sparkSession.table(query.name).collect()]


def run_into(out, frame, checkpoint, mode="update"):
    """Run a query into files, and return the rows of this run; the memory sink has no restart."""
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
    """Return the newest results of each key; these results only grow, so they are the largest."""
    best = {}
    for row in written:
        best[row[:keys]] = max(best.get(row[:keys], row[keys:]), row[keys:])
    return best


def truth(rows):
    """Return counts and sums by key, computed by Spark itself."""
    found = rows.groupBy("page").agg(F.count("*"), F.sum("id")).collect()
    return {(row[0],): tuple(row[1:]) for row in found}


def history_of(grouped, slots):
    """Wait until the history has this many slots, and return it."""
    until(lambda: len(grouped.history()) >= slots)
    return grouped.history()


def calm_shares(slots):
    """Return the shares of all workers before the first move.

    On a busy machine it is random which workers move virtual workers.
    """
    calm = list(itertools.takewhile(lambda slot: not slot.moves, slots)) or slots[:1]
    return [worker.share for slot in calm for worker in slot.workers]


def group(stream, tmp_path, placement="pull", **settings):
    """Group a stream by page on four workers with a control path; the placement may be a name."""
    where = placed(placement) if isinstance(placement, str) else placement
    settings = {"workers": 4, "control": tmp_path / "control", **settings}
    return sy.group_stream(stream, "page", placement=where, **settings)
