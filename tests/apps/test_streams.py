"""Applications on streams give exact totals, also if the query is stopped and restarted."""

import time
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from steelyard.apps.heavy_hitters import heavy_hitters, summaries
from steelyard.apps.naive_bayes import Model, NaiveBayes
from steelyard.apps.scoring import score_by_key
from steelyard.spark.versions.arrow import to_arrow
from tests.apps.texts import SCHEMA, texts
from tests.spark.streaming.conftest import state_in_rocksdb  # noqa: F401  # a fixture
from tests.spark.streaming.placing import placed
from tests.spark.streaming.running import PLACEMENTS, run_into, table

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.needs_spark("4.0", reason="sy.group_stream"),
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

FILES, EACH = 4, 150
TRAINED = texts(FILES * EACH)


def stream_of(spark, rows, folder, schema):
    """Return a stream with one micro-batch for each quarter of the rows."""
    if not folder.exists():
        folder.mkdir()
        arrow = to_arrow(rows.orderBy("id"))
        each = arrow.num_rows // FILES
        for number in range(FILES):
            pq.write_table(arrow.slice(number * each, each), folder / f"{number}.parquet")
            time.sleep(0.01)
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


@PLACEMENTS
def test_naive_bayes_learns_the_same_after_a_restart(spark, tmp_path, placement):
    """Counters are exact after a query that failed in a micro-batch is started again."""
    rows = spark.createDataFrame(TRAINED, SCHEMA)
    bayes = NaiveBayes(label="class", features=["words"], alpha=0.5)
    path, written = tmp_path / "model.parquet", []

    def learn(batch, number, fails_in=None):
        written.append(number)
        if not batch.isEmpty():
            bayes.model(batch).save(path)
        if number == fails_in:
            raise RuntimeError("the sink fails")

    def start(sink):
        stream = stream_of(spark, rows, tmp_path / "in", SCHEMA)
        settings = {"control": tmp_path / "control", "placement": placed(placement, period=2)}
        counts = bayes.counts(stream, workers=4, **settings)
        writer = counts.writeStream.outputMode("complete").foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.trigger(availableNow=True).start()

    # The sink fails, so that Spark replays the same micro-batch. A query that is stopped while it
    # lists files would later put two of them into one micro-batch, and the last period stays open.
    with pytest.raises(StreamingQueryException, match="the sink fails"):
        start(partial(learn, fails_in=1)).awaitTermination()
    start(learn).awaitTermination()
    assert [0, 1, 1, 2, 3] == written
    expected = bayes.model(bayes.messages(rows).groupBy("feature", "value", "class").count())
    learned = Model.load(path)
    assert expected.counts == learned.counts
    tested = spark.createDataFrame(texts(200, seed=1), SCHEMA)
    predicted = learned.predict(tested).collect()
    assert sorted(expected.predict(tested).collect()) == sorted(predicted)
    assert np.mean([row["class"] == row["prediction"] for row in predicted]) > 0.8


def test_a_stream_is_classified_by_columns(spark, tmp_path):
    """The classes are those of a batch frame; array features are refused."""
    rows = spark.range(400).selectExpr("id", "id % 3 AS kind", "id % 7 AS size", "id % 2 AS half")
    model = NaiveBayes("kind", ["size", "half"]).fit(rows, workers=2)
    stream = stream_of(spark, rows, tmp_path / "in", rows.schema)
    found = table(model.predict(stream), tmp_path / "checkpoint", "append")
    assert sorted(map(tuple, model.predict(rows).collect())) == sorted(found)
    lists = stream.withColumn("size", F.array("size"))
    with pytest.raises(ValueError, match=r"features: 'size' is an array, .* in foreachBatch"):
        model.predict(lists)


@PLACEMENTS
def test_heavy_hitters_of_a_stream_are_within_their_bounds(spark, tmp_path, placement):
    """The newest summary of each window has all messages, and true counts within its bounds."""
    rows = spark.range(3000).selectExpr(
        "id",
        "if(id % 3 = 0, 'hot', string(pmod(xxhash64(id), 200))) AS page",
        "timestamp_seconds(id * 3) AS at",
    )
    stream = stream_of(spark, rows, tmp_path / "in", "id long, page string, at timestamp")
    asked = {"time": "at", "window": "1 hour", "workers": 4}
    settings = {"control": tmp_path / "control", "placement": placed(placement, period=2)}
    found = heavy_hitters(stream, "page", **asked, capacity=50, **settings)
    written = table(found, tmp_path / "checkpoint")
    newest = summaries(spark.createDataFrame(written, found.schema))
    whole = summaries(heavy_hitters(rows, "page", **asked, capacity=300))
    assert [s.start for s in whole] == [s.start for s in newest]
    for exact, summary in zip(whole, newest, strict=True):
        assert exact.error == 0
        assert exact.messages == summary.messages
        for page in exact.counts:
            bounds = summary.share(page)
            assert bounds.least <= exact.share(page).least <= bounds.most
        assert ["hot"] == summary.top(1)


def test_a_stream_is_scored_key_by_key(spark, tmp_path):
    """Every message is scored once, with the data of its key."""
    rows = spark.range(1200).selectExpr("if(id % 2 = 0, 'hot', string(id % 90)) AS page", "id")
    stream = stream_of(spark, rows, tmp_path / "in", "page string, id long")

    def score(letters, part):
        return pa.table({"id": part["id"], "letters": [letters] * part.num_rows})

    found = score_by_key(
        *(stream, "page"),
        load=len,
        score=score,
        schema="id long, letters int",
        workers=4,
        control=tmp_path / "control",
    )
    written = run_into(tmp_path / "out", found, tmp_path / "checkpoint", "append")
    expected = rows.select("id", F.length("page")).collect()
    assert sorted(map(tuple, expected)) == sorted(written)
