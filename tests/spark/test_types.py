"""Every aggregator gives Spark's result for every Spark type, or refuses the type."""

import datetime

import pyarrow as pa
import pytest

import steelyard as sy
from steelyard.executor.worker import Map
from tests.spark.every_type import (
    ANSI,
    KINDS,
    NEEDS,
    ROWS,
    SETTINGS,
    ZONE,
    Level,
    aggregators,
    expected,
    frame_of,
    keys_of,
    made,
    rows_of,
    under,
    with_texts,
    wrong_types,
    wrong_values,
)


def test_every_public_aggregator_is_compared():
    """A new aggregator needs an entry in `NEEDS`."""
    found = [getattr(sy, name) for name in sy.__all__]
    classes = {it for it in found if isinstance(it, type) and issubclass(it, sy.Aggregator)}
    assert NEEDS.keys() == classes - {sy.Aggregator}


@pytest.fixture
def rows(spark):
    """Return numbered rows."""
    return spark.range(0, ROWS, 1, 2)


@pytest.fixture(scope="module")
def truth(spark):
    """Return Spark's results as numbers, which do not depend on settings."""
    return expected(frame_of(spark.range(0, ROWS, 1, 2)))


@SETTINGS
def test_aggregates_equal_those_of_spark(spark, rows, truth, settings):
    """Results and keys have Spark's values and types in any time zone and ANSI mode."""
    with under(spark, settings):
        frame = frame_of(rows)
        rows_expected, types = truth
        wanted = [aggregator for kind in KINDS for aggregator in aggregators(kind)]
        ours = sy.group_by(frame, *keys_of(frame), workers=2).aggregate(*wanted)
        assert {} == wrong_types(ours, frame, types)
        assert {} == wrong_values(rows_of(ours), rows_expected)


@SETTINGS
def test_functions_get_and_return_every_type(spark, rows, settings):
    """This includes nested types."""
    with under(spark, settings):
        frame = frame_of(rows, Level.COUNTED)
        same = sy.group_by(frame, "k", workers=2).map_arrow(lambda rows: rows, frame.schema)
        assert frame.schema == same.schema
        assert rows_of(with_texts(frame), "id") == rows_of(with_texts(same), "id")


def test_an_aggregator_refuses_types_that_it_does_not_support(rows):
    """The error is one line and comes before any work starts."""
    grouped = sy.group_by(frame_of(rows), "k", workers=2)
    for kind in KINDS:
        for aggregator, needs in NEEDS.items():
            if kind.level < min(needs, Level.NUMBER):
                with pytest.raises(ValueError, match=rf"{kind.name}\b.*") as raised:
                    grouped.aggregate(made(aggregator, kind))
                assert "\n" not in str(raised.value)


def test_keys_that_arrow_cannot_hold_are_refused(rows):
    """Aggregations and functions refuse them."""
    frame = frame_of(rows)
    for name in {"months", "calendar"} & set(frame.columns):
        grouped = sy.group_by(frame.select("id", name), name, workers=2)
        with pytest.raises(ValueError, match=f"column '{name}' is interval.*Arrow cannot hold"):
            grouped.aggregate(sy.Count())
        with pytest.raises(ValueError, match=f"column '{name}' is interval.*Arrow cannot hold"):
            grouped.map_arrow(lambda rows: rows, "id long")
    with pytest.raises(ValueError, match="schema: column 'm' is interval month"):
        sy.group_by(rows, "id", workers=2).map_arrow(lambda rows: rows, "m interval month")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sums_that_overflow_fail(spark, ansi):
    """They fail with and without ANSI mode; a mean of decimals contains a sum."""
    rows = spark.range(2).selectExpr(
        "1 AS k", "9223372036854775807L - id AS long", f"cast('{'9' * 38}' AS decimal(38)) AS wide"
    )
    with under(spark, {ANSI: ansi}):
        for aggregator in (sy.Sum("long"), sy.Sum("wide"), sy.Mean("wide")):
            ours = sy.group_by(rows, "k", workers=1).aggregate(aggregator)
            with pytest.raises(Exception, match="a sum does not fit into"):
                ours.collect()


NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("given", "announced"),
    [
        (NAIVE, ZONED),
        (ZONED, NAIVE),
        (pa.date32(), ZONED),
        (pa.timestamp("us", "Asia/Kolkata"), pa.date32()),
        (pa.list_(pa.struct([("t", NAIVE)])), pa.list_(pa.struct([("t", ZONED)]))),
        (pa.map_(pa.int32(), ZONED), pa.map_(pa.int32(), NAIVE)),
    ],
    ids=str,
)
def test_a_time_zone_is_never_added_or_dropped(given, announced):
    """Arrow would read a time without a zone as UTC, and Spark as the session's time zone."""
    rows = pa.table({"t": pa.nulls(2, given)})
    task = Map(lambda table: table, pa.schema([("t", announced)])).start()
    with pytest.raises(ValueError, match="only one of them has a time zone"):
        list(task.work(rows))


def test_times_of_any_zone_are_timestamps(spark, rows):
    """A result with a time zone has the schema type timestamp."""
    moment = datetime.datetime(2001, 1, 1, 5, 4, tzinfo=datetime.UTC)

    def times(table):
        kind = pa.timestamp("s", "Asia/Kolkata")
        return pa.table({"t": pa.array([moment] * table.num_rows, kind)})

    with under(spark, {ZONE: "America/New_York"}):
        ours = sy.group_by(rows, "id", workers=1).map_arrow(times, "t timestamp")
        assert {"2001-01-01 00:04:00"} == {row[0] for row in ours.selectExpr("string(t)").collect()}
