"""The packed exchange: what goes in comes out, at the bin that was decided."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import schemes
from steelyard.executor.packing import Decided, Packer, PlannedHere, RoutedHere, packed, unpacked
from steelyard.hashing import hash_keys

BINS = st.lists(st.integers(0, 70_000), max_size=60)


def through_blocks(rows, bins):
    """Rows by bin, after they were packed and unpacked again."""
    blocks = packed(rows, np.array(bins, np.int64))
    found = {}
    for i, bin_number in enumerate(blocks.column("bin").to_pylist()):
        assert bin_number not in found  # one block for each bin
        (table,) = unpacked([blocks.slice(i, 1)])
        found[bin_number] = table
    return found


@given(BINS)
def test_every_row_comes_out_at_its_bin_in_its_order(bins):
    """Nothing is lost, nothing twice, and the order within a bin stays."""
    rows = pa.record_batch({"bin": pa.array(bins, pa.int64()), "row": np.arange(len(bins))})
    found = through_blocks(rows, bins) if bins else {}
    assert sorted(found) == sorted(set(bins))
    for number, table in found.items():
        assert table["bin"].to_pylist() == [number] * len(table)
        assert table["row"].to_pylist() == [i for i, b in enumerate(bins) if b == number]


def test_any_kind_of_column_is_carried():
    """Nested, binary, decimal, time, null: as they were."""
    rows = pa.record_batch(
        {
            "text": ["a", None, "", "b" * 1000],
            "list": [[1, None], [], None, [2]],
            "struct": [{"x": 1}, None, {"x": None}, {"x": 3}],
            "map": pa.array(
                [[("k", 1)], None, [], [("l", None)]], pa.map_(pa.string(), pa.int64())
            ),
            "bytes": [b"\0", b"", None, b"x"],
            "decimal": [decimal.Decimal("1.20"), None, decimal.Decimal("-3.00"), None],
            "time": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), None, None, None],
            "nothing": pa.nulls(4),
        }
    )
    found = through_blocks(rows, [3, 1, 3, 1])
    assert found[3].to_pylist() == rows.take(pa.array([0, 2])).to_pylist()
    assert found[1].to_pylist() == rows.take(pa.array([1, 3])).to_pylist()
    assert found[1].schema == rows.schema


def batches(keys, size=100):
    """Record batches with a row number and a bucket each."""
    rows = pa.table({"row": np.arange(len(keys)), "bucket": pa.array(keys, pa.int32())})
    return rows.to_batches(max_chunksize=size)


def rows_by_bin(destinations, given_batches):
    found = {}
    packer = Packer(destinations, tuple(given_batches[0].schema.names))
    for blocks in packer(given_batches):
        for i, number in enumerate(blocks.column("bin").to_pylist()):
            for table in unpacked([blocks.slice(i, 1)]):
                assert table.column_names == ["row"]
                found.setdefault(number, []).extend(table["row"].to_pylist())
    return found


@given(
    keys=st.lists(st.sampled_from([0] * 10 + list(range(64))), min_size=1, max_size=2000),
    size=st.integers(1, 500),
)
def test_a_plan_made_of_the_rows_balances_them(keys, size):
    """Each row once; no bin above its share by more than the plan allows and rounding."""
    destinations = PlannedHere("bucket", None, 4, 0.01, 64, None)
    found = rows_by_bin(destinations, batches(keys, size))
    assert sorted(row for rows in found.values() for row in rows) == list(range(len(keys)))
    assert max(map(len, found.values())) <= 1.01 * len(keys) / 4 + 8


def test_a_task_that_is_run_again_decides_the_same():
    """The same rows in the same order go the same way: nothing is left from the last run."""
    keys = np.random.default_rng(1).zipf(1.3, 5000) % 64
    for destinations in (
        PlannedHere("bucket", None, 8, 0.01, 64, [1, 2, 3, 4, 5, 6, 7, 8]),
        Decided("bucket"),
    ):
        first = rows_by_bin(destinations, batches(keys))
        assert first == rows_by_bin(destinations, batches(keys))


def test_weights_count():
    """One row that weighs as much as all others has a bin nearly to itself."""
    rows = pa.table(
        {
            "row": np.arange(101),
            "bucket": pa.array(np.arange(101) % 32, pa.int32()),
            "weight": [100.0] + [1.0] * 99 + [None],
        }
    )
    destinations = PlannedHere("bucket", "weight", 2, 0.05, 32, None)
    found = rows_by_bin(destinations, rows.to_batches())
    (beside,) = (rows for rows in found.values() if 0 in rows)
    assert len(beside) < 20
    with pytest.raises(ValueError, match="weight: the column must hold numbers of at least 0"):
        rows_by_bin(destinations, rows.set_column(2, "weight", [[-1.0] * 101]).to_batches())


def test_a_scheme_routes_message_by_message():
    """The bins are those that the scheme's router gives in that order."""
    hashes = hash_keys(pa.array(np.arange(1000) % 50))
    rows = pa.table({"row": np.arange(1000), "hash": hashes.view(np.int64)})
    scheme = schemes.named("porc")
    found = rows_by_bin(RoutedHere("hash", scheme, 7), rows.to_batches(max_chunksize=90))
    expected = scheme.router(7).route_many(hashes)
    assert found == {b: np.flatnonzero(expected == b).tolist() for b in range(7)}


def test_long_inputs_go_in_several_blocks():
    """What is gathered is bounded: a source does not hold all that it reads."""
    keys = np.arange(600_000) % 64
    packer = Packer(PlannedHere("bucket", None, 2, 0.01, 64, None), ("row", "bucket"))
    made = list(packer(batches(keys, 10_000)))
    assert len(made) == 3
    tables = list(unpacked(made))
    assert len(tables) > 3
    assert sum(map(len, tables)) == 600_000
    (whole,) = unpacked(made, all_at_once=True)
    assert len(whole) == 600_000
