"""Streams have the results of Spark for every type, merged by Spark or in Python."""

import pytest
from pyspark.errors import StreamingQueryException

import steelyard as sy
from tests.spark.every_type import (
    ANSI,
    KINDS,
    NATIVE,
    NEEDS,
    ROWS,
    SETTINGS,
    Level,
    aggregators,
    expected,
    frame_of,
    keys_of,
    rows_of,
    under,
    with_texts,
    wrong_types,
    wrong_values,
)
from tests.spark.streaming.placing import placed
from tests.spark.streaming.running import PLACEMENTS, start

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

TWO_WORKERS = {"spark.sql.shuffle.partitions": "2"}


@pytest.fixture(scope="module")
def numbers(spark, tmp_path_factory):
    """A folder with two files of numbers, for two micro-batches."""
    folder = str(tmp_path_factory.mktemp("types") / "in")
    spark.range(0, ROWS, 1, 2).write.parquet(folder)
    return folder


@pytest.fixture(scope="module")
def truth(spark, numbers):
    """The results of Spark, as numbers, which do not depend on settings."""
    return expected(frame_of(spark.read.parquet(numbers)))


def stream_of(spark, folder, schema="id long"):
    """Return a stream with a micro-batch for each file."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(folder)


def done(frame, checkpoint, mode="update"):
    """Run a query to its end, and return the table that it has written."""
    query = start(frame, checkpoint, mode)
    query.awaitTermination()
    return frame.sparkSession.table(query.name)


def group(frame, *keys, folder, placement):
    """Group a stream on two workers."""
    return sy.group_stream(
        frame, *keys, workers=2, placement=placed(placement), control=folder / "control"
    )


@PLACEMENTS
@SETTINGS
@pytest.mark.parametrize("among", [NATIVE, tuple(NEEDS)], ids=["merged by Spark", "in Python"])
def test_aggregates_equal_those_of_spark(
    spark, numbers, truth, tmp_path, settings, placement, among
):
    """Results and keys have equal values and types, for every time zone and overflow mode."""
    with under(spark, settings | TWO_WORKERS):
        rows, types = truth
        frame = frame_of(stream_of(spark, numbers))
        wanted = [aggregator for kind in KINDS for aggregator in aggregators(kind, among)]
        grouped = group(frame, *keys_of(frame), folder=tmp_path, placement=placement)
        ours = grouped.aggregate(sy.Count(), *wanted)
        assert {} == wrong_types(ours, frame, types)
        found = rows_of(done(ours, tmp_path / "checkpoint"), latest="count")
        assert {} == wrong_values(found, rows, among)


@PLACEMENTS
@SETTINGS
def test_functions_accept_and_return_every_type(spark, numbers, tmp_path, settings, placement):
    """Nested types are included."""
    with under(spark, settings | TWO_WORKERS):
        frame = frame_of(stream_of(spark, numbers), Level.COUNTED)
        grouped = group(frame, "k", folder=tmp_path, placement=placement)
        same = grouped.map_arrow(lambda rows: rows, frame.schema)
        assert [(f.name, f.dataType) for f in frame.schema] == [
            (f.name, f.dataType) for f in same.schema
        ]
        theirs = frame_of(spark.read.parquet(numbers), Level.COUNTED)
        found = done(same, tmp_path / "checkpoint", "append")
        assert rows_of(with_texts(theirs), "id") == rows_of(with_texts(found), "id")


LONG = "9223372036854775807L - id"
DECIMAL = f"cast('{'9' * 35}.999' AS decimal(38,3))"


@pytest.mark.parametrize(
    ("placement", "ansi", "value", "wanted"),
    [
        ("pull", "false", LONG, [sy.Sum("v")]),
        ("pull", "true", LONG, [sy.Sum("v")]),
        ("delegated", "false", LONG, [sy.Sum("v")]),
        ("pull", "false", DECIMAL, [sy.Sum("v")]),
        ("pull", "false", DECIMAL, [sy.Mean("v")]),
        ("pull", "false", LONG, [sy.Sum("v"), sy.CollectSet("v")]),
    ],
    ids=["long", "ANSI", "delegated", "decimal", "mean", "in Python"],
)
def test_sums_that_do_not_fit_fail(spark, tmp_path, placement, ansi, value, wanted):
    """The sum of two micro-batches is too large for its type, with and without ANSI mode."""
    with under(spark, {ANSI: ansi} | TWO_WORKERS):
        rows = spark.range(0, 2, 1, 2).selectExpr("'k' AS k", f"{value} AS v")
        rows.write.parquet(str(tmp_path / "in"))
        stream = stream_of(spark, str(tmp_path / "in"), rows.schema)
        ours = group(stream, "k", folder=tmp_path, placement=placement).aggregate(*wanted)
        with pytest.raises(StreamingQueryException, match="a sum does not fit into"):
            done(ours, tmp_path / "checkpoint")
