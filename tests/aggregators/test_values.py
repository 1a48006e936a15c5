"""The types, edge cases and error messages of aggregators."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest

from steelyard.aggregators import (
    Aggregation,
    ApproxDistinct,
    CollectSet,
    Count,
    Groups,
    Max,
    Mean,
    Min,
    Quantiles,
    Sum,
    TopK,
    Variance,
)


def result(aggregator, values, kind=None):
    """Return the result of an aggregator for values of one key, added in two halves."""
    column = pa.array(values, kind)
    rows = pa.record_batch({"key": [1] * len(column), "v": column})
    agg = Aggregation([aggregator], ["key"], rows.schema)
    half = len(column) // 2
    parts = [agg.add(agg.create(), rows.slice(0, half)), agg.add(agg.create(), rows.slice(half))]
    (answer,) = agg.result(agg.merge(*parts)).column(1).to_pylist()
    return answer


D = decimal.Decimal
DAY = datetime.date(2026, 1, 1)
NAN = float("nan")


@pytest.mark.parametrize(
    ("aggregator", "values", "kind", "expected"),
    [
        (Sum("v"), [1.5, 2.5, None], None, 4.0),
        (Sum("v"), [D("1.10"), D("2.25")], pa.decimal128(5, 2), D("3.35")),
        (Sum("v"), [100, 100], pa.int8(), 200),
        (Sum("v"), [2**62, 2**62, -(2**62)], None, 2**62),
        (Mean("v"), [1, 2], pa.int32(), 1.5),
        (Mean("v"), [D("1.00"), D("1.01"), D("1.01")], pa.decimal128(5, 2), D("1.006667")),
        (Mean("v"), [D("0.00"), D("0.01")], pa.decimal128(5, 2), D("0.005000")),
        (
            Mean("v"),
            [D("0.0000"), D("0.0001")] + [D("0.0000")] * 6,
            pa.decimal128(5, 4),
            D("0.00001250"),
        ),
        (Mean("v"), [D("1"), D("0"), D("0")] + [D(0)] * 13, pa.decimal128(1, 0), D("0.0625")),
        (Mean("v"), [D("1")] + [D(0)] * 31, pa.decimal128(1, 0), D("0.0313")),  # half goes up
        (Mean("v"), [D("1" * 28 + ".25")], pa.decimal128(30, 2), D("1" * 28 + ".250000")),
        (Sum("v"), [D(9) * 10**37, -D(9) * 10**37], pa.decimal128(38, 0), D(0)),
        (Min("v"), ["b", "a"], pa.string_view(), "a"),
        (Max("v"), [1.5, 2.5], pa.float16(), 2.5),
        (Sum("v"), [D("1.5"), D("2")], pa.decimal64(5, 1), D("3.5")),
        (CollectSet("v"), ["x", "y", "x"], pa.dictionary(pa.int8(), pa.string()), ["x", "y"]),
        (CollectSet("v"), [0.0, -0.0], None, [0.0]),
        (TopK("v", k=1), [0.0, -0.0], None, [{"value": 0.0, "count": 2, "error": 0}]),
        (ApproxDistinct("v"), [b"\xff\xfe", b"\xff\xff"], pa.binary(2), 2),
        (ApproxDistinct("v"), ["", "a", ""], None, 2),
        (ApproxDistinct("v"), [b"", b"a", None], None, 2),
        (ApproxDistinct("v"), ["", None], None, 1),
        (Mean("v"), [2**63 - 1, 2**63 - 1], None, float(2**63)),
        (Min("v"), [DAY, None], None, DAY),
        (Max("v"), [b"a", b"b"], None, b"b"),
        (Max("v"), [True, False], None, True),
        (Min("v"), [NAN, 2.0], None, 2.0),
        (Max("v"), [1.0, None, -math.inf], None, 1.0),
        (Max("v"), [D("1.5"), D("-2")], pa.decimal128(4, 1), D("1.5")),
        (Variance("v"), [1e9 + 1, 1e9 + 2, 1e9 + 3], None, 1.0),
        (Variance("v"), [D("1"), D("3")], pa.decimal128(4, 0), 2.0),
        (Variance("v"), [7], None, None),
        (CollectSet("v"), [3, 1, None, 3], None, [1, 3]),
        (ApproxDistinct("v"), [b"x", b"x", b"y"], None, 2),
        (ApproxDistinct("v"), [DAY, None], None, 1),
        (ApproxDistinct("v"), [0.0, -0.0, 1.5], None, 2),
        (ApproxDistinct("v"), [True, False], None, 2),
        (ApproxDistinct("v"), [D("1.5"), D("1.5")], pa.decimal128(4, 1), 1),
        (ApproxDistinct("v"), [None, None], pa.string(), 0),
        (Quantiles("v", [0.5]), [D("1"), D("3"), D("9")], pa.decimal128(4, 0), [3.0]),
        (Quantiles("v"), [None, None], pa.int64(), None),
        (Quantiles("v"), [NAN, NAN], None, None),
        (TopK("v", k=1), [DAY, DAY, None], None, [{"value": DAY, "count": 2, "error": 0}]),
        (Count("v"), [None, 1, None], None, 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_aggregators_give_the_values_and_types_of_spark(aggregator, values, kind, expected):
    """Nulls are skipped, and every input type has the same result type as in Spark."""
    assert expected == result(aggregator, values, kind)


def test_nan_is_above_all_numbers():
    """Minimum and maximum order NaN as Spark does."""
    assert math.isnan(result(Max("v"), [1.0, NAN, 2.0, None]))
    assert math.isnan(result(Min("v"), [NAN, NAN]))


@pytest.mark.parametrize(
    ("aggregator", "values", "kind"),
    [
        (Sum("v"), [2**62] * 4, None),
        (Sum("v"), [2**63], pa.uint64()),
        (Sum("v"), [D(2**126)] * 4, pa.decimal128(38, 0)),
        (Sum("v"), [D(9) * 10**37] * 2, pa.decimal128(38, 0)),
        (Mean("v"), [D(2**126)] * 4, pa.decimal128(38, 0)),
        (Mean("v"), [D("1.25")], pa.decimal128(38, 36)),
    ],
)
def test_a_result_that_does_not_fit_its_type_is_an_error(aggregator, values, kind):
    """An overflow raises an error and never gives a wrong number."""
    with pytest.raises(OverflowError, match="does not fit into"):
        result(aggregator, values, kind)


def test_dictionary_encoded_keys_are_grouped_by_value():
    """Dictionary values without rows form no groups, and null is one group."""
    keys = pa.array(["a", "b", None, "c", "c"]).dictionary_encode()
    rows = pa.record_batch({"k": keys, "v": [1, 2, 3, 4, 5]})
    agg = Aggregation([Count(), Sum("v"), Variance("v")], ["k"], rows.schema)
    parts = [agg.add(agg.create(), rows.slice(i)) for i in (2, 3)]
    merged = agg.result(agg.merge(*parts)).to_pydict()
    assert merged["k"] == [None, "c"]
    assert merged["count"] == [1, 4]
    assert merged["sum(v)"] == [3, 18]


def test_the_variance_of_infinite_values_is_nan():
    """The computation gives no warning."""
    assert math.isnan(result(Variance("v"), [1.0, math.inf]))


def test_keys_are_equal_when_they_are_equal_in_spark():
    """This holds for several key columns, nulls, -0.0 and NaN."""
    rows = pa.record_batch({"a": [0.0, -0.0, NAN, NAN, None], "b": [None, None, "x", "x", "x"]})
    agg = Aggregation([Count()], ["a", "b"], rows.schema)
    assert [2, 2, 1] == agg.result(agg.add(agg.create(), rows)).column("count").to_pylist()


def test_all_nans_are_one_value():
    """NaNs with a sign or a payload are one key, and one value of a set."""
    bits = np.array([0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1], np.uint64)
    rows = pa.record_batch({"k": bits.view(np.float64), "v": bits.view(np.float64)})
    agg = Aggregation([Count(), CollectSet("v"), TopK("v")], ["k"], rows.schema)
    (row,) = agg.result(agg.add(agg.create(), rows)).to_pylist()
    assert (3, 1) == (row["count"], len(row["collect_set(v)"]))
    assert [3] == [entry["count"] for entry in row["top_k(v)"]]


def test_null_structs_are_not_counted():
    """Spark writes a null struct with a null field even if the field is not nullable."""
    kind = pa.struct([pa.field("x", pa.timestamp("us"), nullable=False)])
    valid, inner = pa.array([True, False]).buffers()[1], pa.array([1, None], pa.timestamp("us"))
    structs = pa.Array.from_buffers(kind, 2, [valid], children=[inner])
    rows = pa.record_batch({"k": [1, 1], "v": structs})
    agg = Aggregation([Count("v")], ["k"], rows.schema)
    assert [1] == agg.result(agg.add(agg.create(), rows)).column("count(v)").to_pylist()


def test_all_chunks_of_a_table_are_added():
    """A table with several chunks gives the same result as one batch."""
    table = pa.concat_tables([pa.table({"k": ["a", "b"]}), pa.table({"k": ["a"]})])
    agg = Aggregation([Count()], ["k"], table.schema)
    added = agg.add(agg.create(), table)
    assert {"k": ["a", "b"], "count": [2, 1]} == agg.result(added).to_pydict()
    assert added == agg.add(added, table.slice(0, 0))


def test_groups_yield_their_values():
    """Each group with values that are not null appears once, in the order of its number."""
    groups = Groups.of([pa.array(["a", "b", "a", "c"])])
    pieces = {g: p.to_pylist() for g, p in groups.pieces(pa.array([1, None, 2, 3]))}
    assert {0: [1, 2], 2: [3]} == pieces
    assert [] == list(Groups.of([pa.array([], pa.string())]).pieces(pa.array([], pa.int64())))


SCHEMA = pa.schema([("k", pa.string()), ("v", pa.string()), ("l", pa.list_(pa.int64()))])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Aggregation([], ["k"], SCHEMA), "needs at least one aggregator, got none"),
        (lambda: Aggregation([Count()], [], SCHEMA), "needs at least one key column, got none"),
        (lambda: Aggregation([Count()], ["x"], SCHEMA), "there is no column 'x' to group by"),
        (lambda: Aggregation([Count()], ["l"], SCHEMA), "the key 'l' must be a boolean, a number"),
        (
            lambda: Aggregation([Count()], ["k"], pa.schema([SCHEMA[0], SCHEMA[0]])),
            "there is more than one column 'k' to group by",
        ),
        (lambda: Aggregation([Sum("x")], ["k"], SCHEMA), r"sum\(x\) needs the column 'x'"),
        (lambda: Aggregation([Sum("v")], ["k"], SCHEMA), r"sum\(v\) needs a column of numbers"),
        (lambda: Aggregation([Mean("v")], ["k"], SCHEMA), r"avg\(v\) needs a column of numbers"),
        (lambda: Aggregation([Variance("v")], ["k"], SCHEMA), r"var_samp\(v\) needs .* numbers"),
        (lambda: Aggregation([Quantiles("v")], ["k"], SCHEMA), r"quantiles\(v\) needs .* numbers"),
        (
            lambda: Aggregation([Count()], ["k"], pa.schema([("k", pa.decimal256(50, 0))])),
            "the key 'k' must be .* a number of at most 128 bits, .*, got decimal256",
        ),
        (
            lambda: Aggregation([Min("d")], ["k"], SCHEMA.append(pa.field("d", pa.duration("s")))),
            r"min\(d\) needs a column of values with an order, got duration",
        ),
        (lambda: Aggregation([Max("l")], ["k"], SCHEMA), r"max\(l\) needs .* with an order"),
        (lambda: Aggregation([TopK("l")], ["k"], SCHEMA), r"top_k\(l\) needs .* with an order"),
        (lambda: Aggregation([CollectSet("l")], ["k"], SCHEMA), r"collect_set\(l\) needs"),
        (lambda: Aggregation([ApproxDistinct("l")], ["k"], SCHEMA), "needs a column of plain"),
        (
            lambda: Aggregation([Count(), Count()], ["k"], SCHEMA),
            "two columns of the result would be called 'count'",
        ),
        (lambda: TopK("v", k=0), "k must be a whole number, at least 1, got 0"),
        (lambda: TopK("v", k=5, capacity=4), "capacity must be a whole number, at least 5, got 4"),
        (lambda: ApproxDistinct("v", lg_k=3), "lg_k must be a whole number, from 4 to 21, got 3"),
        (lambda: Quantiles("v", ranks=()), "ranks must have at least one number from 0 to 1"),
        (lambda: Quantiles("v", ranks=(2,)), "ranks must be .* at least 0 and at most 1, got 2"),
        (lambda: Quantiles("v", 0.5), r"ranks must be a list of numbers, such as \[0.5\], got 0.5"),
        (lambda: Quantiles("v", "0.5"), r"ranks must be a list of numbers, such as \[0.5\]"),
        (lambda: Quantiles("v", k=7), "k must be a whole number, from 8 to 65,535, got 7"),
    ],
)
def test_bad_input_is_refused_before_any_work(make, sentence):
    """The error message names the aggregator, the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        make()


def test_two_aggregators_of_one_column_have_their_aliases():
    """Without aliases the result would have two columns of one name, which is refused."""
    rows = pa.record_batch({"key": [1, 1], "v": [1.0, 3.0]})
    halves, tails = Quantiles("v", [0.5]), Quantiles("v", [0.99])
    with pytest.raises(ValueError, match="two columns of the result would be called"):
        Aggregation([halves, tails], ["key"], rows.schema)
    agg = Aggregation([halves.alias("p50"), tails.alias("p99")], ["key"], rows.schema)
    found = agg.result(agg.add(agg.create(), rows)).to_pylist()
    assert [{"key": 1, "p50": [1.0], "p99": [3.0]}] == found
    assert halves.name == "quantiles(v)", "the original has no alias"


@pytest.mark.parametrize("name", ["", None, 3])
def test_an_alias_is_a_name(name):
    """Other values are refused at once."""
    with pytest.raises(TypeError, match="alias must be a name, got"):
        Count().alias(name)
