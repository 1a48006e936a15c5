"""A stream takes the same keys as a frame: names in any case, fields and expressions."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import steelyard as sy
from steelyard.spark.streaming.stream_input import StreamInput
from tests.spark.streaming.placing import placed
from tests.spark.streaming.running import PLACEMENTS, last_of, table

pytestmark = [
    pytest.mark.streaming,
    pytest.mark.slow,
    pytest.mark.usefixtures("state_in_rocksdb"),
]

UPPER = "upper(page)"


def grouped(stream, folder, key, placement="pull", **settings):
    """Group a stream on four workers."""
    given = {"workers": 4, "control": folder / "control", "placement": placed(placement)}
    return sy.group_stream(stream, key, **given, **settings)


@PLACEMENTS
def test_an_expression_has_exact_counts(rows, stream, tmp_path, placement):
    """The key column has the name of `groupBy`, and Spark's own counts."""
    expected = rows.groupBy(F.upper("page")).agg(F.count("*"), F.sum("id"))
    found = grouped(stream, tmp_path, F.upper("PAGE").alias("x"), placement, weight="ID")
    counts = found.aggregate(sy.Count(), sy.Sum("id"))
    assert ["x", "count", "sum(id)"] == counts.columns
    assert "GroupedStream('x', workers=4" in repr(found)
    truth = {(row[0],): tuple(row[1:]) for row in expected.collect()}
    assert truth == last_of(table(counts, tmp_path / "checkpoint"))
    assert {"HOT"} <= {hot.key for slot in found.history() for hot in slot.hot_keys}


def test_states_that_python_merges_have_the_key_too(rows, stream, tmp_path):
    """The shards of states are merged by the values of the expression."""
    found = grouped(stream, tmp_path, F.upper("page")).aggregate(sy.Count(), sy.CollectSet("page"))
    assert [UPPER, "count", "collect_set(page)"] == found.columns
    expected = {(row[0],): (row[1],) for row in rows.groupBy(F.upper("page")).count().collect()}
    written = table(found, tmp_path / "checkpoint")
    assert expected == last_of([row[:2] for row in written])
    assert {("hot",), ()} >= {tuple(row[2]) for row in written if row[0] in ("HOT", None)}


def test_functions_get_the_columns_of_the_user(stream, tmp_path):
    """The computed key stays at the sources."""

    def seen(rows):
        return pa.table({"names": [",".join(rows.column_names)] * len(rows), "id": rows["id"]})

    made = grouped(stream, tmp_path, F.upper("page")).map_arrow(seen, "names string, id long")
    written = table(made, tmp_path / "checkpoint", mode="append")
    assert {"page,id,at"} == {row[0] for row in written}
    assert len(written) == len({row[1] for row in written})


def test_a_failed_function_of_a_computed_key_names_its_rows(stream, tmp_path):
    """The error has no keys, because workers do not get them."""

    def fails(rows):
        raise ArithmeticError("no such page")

    made = grouped(stream, tmp_path, F.upper("page")).map_arrow(fails, "id long")
    with pytest.raises(
        Exception, match=r"failed in micro-batch 0 on [\d,]+ rows of [\d,]+ buckets: A"
    ):
        table(made, tmp_path / "checkpoint", mode="append")


@pytest.mark.parametrize(
    ("key", "settings", "sentence"),
    [
        (F.rand, {}, r"key: Column<.*> comes from rand\(\)"),
        (lambda: F.max("page"), {}, "must be computed from one row"),
        (lambda: F.lower("nope"), {}, "key: Spark cannot compute"),
        (lambda: "page", {"salt": ["nope"]}, "salt: there is no column 'nope'"),
    ],
)
def test_bad_keys_are_refused(stream, tmp_path, key, settings, sentence):
    """The call fails before a query starts."""
    with pytest.raises(ValueError, match=sentence):
        grouped(stream, tmp_path, key(), **settings)


def test_a_plan_for_another_key_is_refused(rows, stream, tmp_path):
    """It would balance nothing."""
    plan = sy.plan(rows, F.upper("page"), workers=4)
    assert grouped(stream, tmp_path, F.expr(UPPER), routing=plan).control is not None
    with pytest.raises(ValueError, match=r"for the key 'upper\(page\)', not for 'page'; make a pl"):
        grouped(stream, tmp_path, "page", routing=plan)


@pytest.mark.parametrize(
    ("written", "named"), [("PAGE", "PAGE"), ("page", "page"), (UPPER, "key"), ("id % 7", "key")]
)
def test_the_command_line_takes_the_same_keys(spark, files, tmp_path, written, named):
    """The column of an expression is called `key`."""
    frame, key = StreamInput("parquet", path=files).frame(spark, written)
    assert ["page", "id", "at"] == frame.columns
    assert [named, "count"] == grouped(frame, tmp_path, key).aggregate(sy.Count()).columns
