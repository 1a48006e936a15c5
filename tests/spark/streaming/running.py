"""Small streams, queries over them, and the truth to compare with."""

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
    """Settings that may be changed meanwhile, and are then as they were."""
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
    """A micro-batch for each file."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


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
    until(lambda: len(grouped.history()) >= slots)
    return grouped.history()


def calm_shares(slots):
    """Of all workers while nothing has moved: who moves then, on a busy machine, is by chance."""
    calm = list(itertools.takewhile(lambda slot: not slot.moves, slots)) or slots[:1]
    return [worker.share for slot in calm for worker in slot.workers]


def group(stream, tmp_path, placement="pull", **settings):
    """Four workers that learn; the placement may be a name."""
    where = placed(placement) if isinstance(placement, str) else placement
    settings = {"workers": 4, "control": tmp_path / "control", **settings}
    return sy.group_stream(stream, "page", placement=where, **settings)
