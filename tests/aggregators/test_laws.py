"""The result of a merge does not depend on the order, the nesting or the split of the rows."""

import pickle
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard.aggregators import Aggregation, ApproxDistinct, Quantiles, TopK
from tests.aggregators.cases import EXPECTED, ROWS, aggregation, batch


def by_key(table):
    """Return the rows of a result by key; floats match up to the rounding error of a sum."""

    def rounded(value):
        if isinstance(value, list):
            return [rounded(v) for v in value]
        return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value

    return {
        (row["key"], row["part"]): {name: rounded(value) for name, value in row.items()}
        for row in table.to_pylist()
    }


def plain(table):
    return {(row["key"], row["part"]): row for row in table.to_pylist()}


def test_every_public_aggregator_is_checked():
    """A new aggregator needs a plain result in `cases.py`."""
    public = {name for name in sy.__all__ if _is_aggregator(getattr(sy, name))}
    assert public == {type(aggregator).__name__ for aggregator in EXPECTED}


def _is_aggregator(found):
    return isinstance(found, type) and issubclass(found, sy.Aggregator) and found != sy.Aggregator


@given(ROWS)
def test_results_are_right(rows):
    """Every aggregator agrees with a few lines of plain Python."""
    agg = aggregation()
    table = agg.result(agg.add(agg.create(), batch(rows)))
    expected = {}
    for key, part in {(row[0], row[1]) for row in rows}:
        mine = [row for row in rows if row[:2] == (key, part)]
        numbers, words = [row[2] for row in mine], [row[3] for row in mine]
        expected[key, part] = {a.name: f(numbers, words) for a, f in EXPECTED.items()}
    assert expected.keys() == plain(table).keys()
    for key, row in by_key(table).items():
        for name, value in expected[key].items():
            assert row[name] == value, name


@pytest.mark.parametrize("aggregator", EXPECTED, ids=lambda a: a.name)
@given(rows=ROWS, data=st.data())
def test_any_split_and_order_of_merges_gives_the_same_result(aggregator, rows, data):
    """Three workers get any pieces of the rows, and their states merge in any nesting."""
    agg = aggregation([aggregator])
    whole = agg.create()
    parts = [agg.create() for _ in range(3)]
    start = 0
    while start < len(rows):
        end = data.draw(st.integers(start + 1, len(rows)))
        piece = batch(rows[start:end])
        worker = data.draw(st.integers(0, 2))
        whole = agg.add(whole, piece)
        parts[worker] = agg.add(parts[worker], piece)
        start = end
    expected = plain(agg.result(whole))
    a, b, c = data.draw(st.permutations(parts))
    merges = [agg.merge(agg.merge(a, b), c), agg.merge(a, agg.merge(c, b)), agg.merge(b, a, c)]
    merges.append(reduce(agg.merge, parts))
    for merged in merges:
        assert by_key(agg.result(merged)) == expected


@pytest.mark.parametrize("aggregator", EXPECTED, ids=lambda a: a.name)
@given(rows=ROWS)
def test_merging_an_empty_state_does_not_change_the_result(aggregator, rows):
    """`create()` is the neutral element of `merge`, and a merge of one table keeps its rows."""
    agg = aggregation([aggregator])
    partial = agg.add(agg.create(), batch(rows))
    expected = plain(agg.result(partial))
    for same in (agg.merge(partial), agg.merge(agg.create(), partial, agg.create())):
        assert by_key(agg.result(same)) == expected
    assert agg.result(agg.create()).num_rows == 0
    assert agg.merge().num_rows == 0


@pytest.mark.parametrize("aggregator", EXPECTED, ids=lambda a: a.name)
@given(rows=ROWS)
def test_states_survive_arrow_and_aggregators_survive_pickling(aggregator, rows):
    """A partial table keeps its schema and its result after a trip through Arrow IPC."""
    agg = aggregation([aggregator])
    partial = agg.add(agg.create(), batch(rows))
    assert partial.schema == agg.partial_schema
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, partial.schema) as writer:
        writer.write_table(partial)
    received = pa.ipc.open_stream(sink.getvalue()).read_all()
    other = pickle.loads(pickle.dumps(agg))
    assert by_key(other.result(received)) == plain(agg.result(partial))
    assert agg.result(partial).schema == agg.result_schema
    assert aggregator == pickle.loads(pickle.dumps(aggregator))
    assert hash(aggregator) == hash(pickle.loads(pickle.dumps(aggregator)))


@given(st.integers(0, 2**32), st.integers(1, 20), st.integers(2, 8))
def test_top_k_keeps_its_bounds_when_values_do_not_fit(seed, capacity, pieces):
    """The true count is in [count, count + error]; error is at most messages / (capacity + 1)."""
    values = np.random.default_rng(seed).zipf(1.3, 500) % 97
    rows = pa.record_batch({"key": ["k"] * 500, "value": values})
    agg = Aggregation([TopK("value", k=capacity, capacity=capacity)], ["key"], rows.schema)
    parts = [agg.add(agg.create(), rows.slice(i * 100, 100)) for i in range(5)]
    tree = reduce(agg.merge, parts[: pieces % 5 + 1])
    merged = agg.merge(tree, *parts[pieces % 5 + 1 :])
    entries = agg.result(merged).column(1).to_pylist()[0]
    truth = np.bincount(values)
    error = merged.column("top_k(value).error").to_pylist()[0]
    assert error <= 500 / (capacity + 1)
    for entry in entries:
        assert entry["count"] <= truth[entry["value"]] <= entry["count"] + entry["error"]
    listed = {entry["value"] for entry in entries}
    assert all(count <= error for value, count in enumerate(truth) if value not in listed)


@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(5, 40), st.integers(1, 8))
def test_a_value_that_top_k_does_not_list_is_not_much_more_frequent(seed, k, capacity, parts):
    """Its true count is at most the least listed count plus the error."""
    values = np.random.default_rng(seed).zipf(1.3, 400) % 97
    rows = pa.record_batch({"key": ["k"] * 400, "value": values})
    agg = Aggregation([TopK("value", k, capacity)], ["key"], rows.schema)
    pieces = [rows.slice(at[0], at.size) for at in np.array_split(np.arange(400), parts)]
    merged = agg.merge(*(agg.add(agg.create(), piece) for piece in pieces))
    entries = agg.result(merged).column(1).to_pylist()[0]
    bound = min((entry["count"] + entry["error"] for entry in entries), default=400)
    listed = {entry["value"] for entry in entries}
    truth = np.bincount(values)
    if len(listed) == k:
        assert all(count <= bound for value, count in enumerate(truth) if value not in listed)


@given(st.integers(0, 2**32), st.integers(1, 10_000), st.sampled_from([0.8, 1.0, 1.4]))
@settings(max_examples=10)
def test_top_k_is_exact_up_to_ten_thousand_different_values(seed, distinct, skew):
    """The result over eight parts is that of a plain count, with the default capacity."""
    weights = 1 / np.arange(1, distinct + 1) ** skew
    values = np.random.default_rng(seed).choice(distinct, 20_000, p=weights / weights.sum())
    rows = pa.record_batch({"key": ["k"] * values.size, "value": values})
    agg = Aggregation([TopK("value", 10)], ["key"], rows.schema)
    parts = [agg.add(agg.create(), rows.slice(at, 2500)) for at in range(0, 20_000, 2500)]
    counts = np.bincount(values)
    most = np.argsort(-counts, kind="stable")[:10]
    expected = [
        {"value": int(value), "count": int(counts[value]), "error": 0}
        for value in most
        if counts[value]
    ]
    assert [expected] == agg.result(agg.merge(*parts)).column(1).to_pylist()


def test_distinct_estimates_do_not_depend_on_merges():
    """The estimate for a large set is the same for any split, and close to the true count."""
    values = np.arange(50_000) * 7919
    rows = pa.record_batch({"key": ["k"] * 50_000, "value": values})
    agg = Aggregation([ApproxDistinct("value")], ["key"], rows.schema)
    whole = agg.add(agg.create(), rows)
    parts = [agg.add(agg.create(), rows.slice(i, 20_000)) for i in (0, 10_000, 20_000, 30_000)]
    forwards, backwards = reduce(agg.merge, parts), reduce(agg.merge, parts[::-1])
    estimates = {agg.result(t).column(1).to_pylist()[0] for t in (whole, forwards, backwards)}
    assert len(estimates) == 1
    assert estimates.pop() == pytest.approx(50_000, rel=0.05)


def test_quantiles_stay_close_over_merges():
    """For 100,000 values in ten parts the rank error is at most 2 %."""
    values = np.random.default_rng(1).permutation(100_000).astype(float)
    rows = pa.record_batch({"key": ["k"] * 100_000, "value": values})
    ranks = (0.01, 0.25, 0.5, 0.75, 0.99)
    agg = Aggregation([Quantiles("value", ranks)], ["key"], rows.schema)
    parts = [agg.add(agg.create(), rows.slice(i * 10_000, 10_000)) for i in range(10)]
    answers = agg.result(reduce(agg.merge, parts)).column(1).to_pylist()[0]
    for rank, answer in zip(ranks, answers, strict=True):
        assert answer / 100_000 == pytest.approx(rank, abs=0.02)


def test_spark_reads_our_distinct_sketches(spark):
    """The state is an HLL sketch that Spark merges and estimates natively."""
    from pyspark.sql import functions as F

    rows = pa.record_batch({"key": ["k"] * 4000, "word": [f"w{i % 3000}" for i in range(4000)]})
    agg = Aggregation([ApproxDistinct("word")], ["key"], rows.schema)
    state = agg.add(agg.create(), rows).column("approx_count_distinct(word).sketch").to_pylist()[0]
    theirs = spark.createDataFrame([(f"w{i}",) for i in range(2000, 5000)], "word string").agg(
        F.hll_sketch_agg("word").alias("sketch")
    )
    ours = spark.createDataFrame([(bytearray(state),)], "sketch binary")
    both = ours.union(theirs).agg(F.hll_sketch_estimate(F.hll_union_agg("sketch"))).first()[0]
    assert both == pytest.approx(5000, rel=0.05)
