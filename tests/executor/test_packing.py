"""The packed exchange delivers every row to the bin that was chosen for it."""

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
    """Pack and unpack rows; return a table for each bin."""
    blocks = packed(rows, np.array(bins, np.int64))
    found = {}
    for i, bin_number in enumerate(blocks.column("bin").to_pylist()):
        assert bin_number not in found  # one block for each bin
        (table,) = unpacked([blocks.slice(i, 1)])
        found[bin_number] = table
    return found


@given(BINS)
def test_every_row_arrives_once_at_its_bin_and_in_order(bins):
    """No row is lost or doubled, and rows of a bin keep their order."""
    rows = pa.record_batch({"bin": pa.array(bins, pa.int64()), "row": np.arange(len(bins))})
    found = through_blocks(rows, bins) if bins else {}
    assert sorted(found) == sorted(set(bins))
    for number, table in found.items():
        assert table["bin"].to_pylist() == [number] * len(table)
        assert table["row"].to_pylist() == [i for i, b in enumerate(bins) if b == number]


def test_values_of_all_types_arrive_unchanged():
    """Nested values, binaries, decimals, times and nulls are equal after the exchange."""
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
    """Return record batches of rows with a number and a bucket."""
    rows = pa.table({"row": np.arange(len(keys)), "bucket": pa.array(keys, pa.int32())})
    return rows.to_batches(max_chunksize=size)


def rows_by_bin(destinations, given_batches):
    """Pack batches and return the numbers of the rows in each bin."""
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
def test_a_plan_from_the_rows_themselves_balances_them(keys, size):
    """No bin exceeds its share by more than epsilon and rounding; each row arrives once."""
    destinations = PlannedHere("bucket", None, 4, 0.01, 64, None)
    found = rows_by_bin(destinations, batches(keys, size))
    assert sorted(row for rows in found.values() for row in rows) == list(range(len(keys)))
    assert max(map(len, found.values())) <= 1.01 * len(keys) / 4 + 8


def test_a_retry_chooses_the_same_bins():
    """The same rows in the same order get the same bins, because no state is left from before."""
    keys = np.random.default_rng(1).zipf(1.3, 5000) % 64
    for destinations in (
        PlannedHere("bucket", None, 8, 0.01, 64, [1, 2, 3, 4, 5, 6, 7, 8]),
        Decided("bucket"),
    ):
        first = rows_by_bin(destinations, batches(keys))
        assert first == rows_by_bin(destinations, batches(keys))


def test_a_heavy_row_shares_its_bin_with_few_others():
    """A row that weighs as much as all others together has a bin nearly to itself."""
    rows = pa.table(
        {
            "row": np.arange(101),
            "bucket": pa.array(np.arange(101) % 32, pa.int32()),
            "weight": [100.0] + [1.0] * 99 + [None],
        }
    )
    destinations = PlannedHere("bucket", "weight", 2, 0.05, 32, None)
    found = rows_by_bin(destinations, rows.to_batches())
    (with_heavy_row,) = (rows for rows in found.values() if 0 in rows)
    assert len(with_heavy_row) < 20
    with pytest.raises(ValueError, match="weight: the column must hold numbers of at least 0"):
        rows_by_bin(destinations, rows.set_column(2, "weight", [[-1.0] * 101]).to_batches())


def test_a_scheme_routes_message_by_message():
    """The bins equal those that the router of the scheme returns for the same order."""
    hashes = hash_keys(pa.array(np.arange(1000) % 50))
    rows = pa.table({"row": np.arange(1000), "hash": hashes.view(np.int64)})
    scheme = schemes.named("porc")
    found = rows_by_bin(RoutedHere("hash", scheme, 7), rows.to_batches(max_chunksize=90))
    expected = scheme.router(7).route_many(hashes)
    assert found == {b: np.flatnonzero(expected == b).tolist() for b in range(7)}


def test_a_long_input_is_sent_in_several_blocks():
    """A source gathers a limited number of rows, and does not hold its whole input."""
    keys = np.arange(600_000) % 64
    packer = Packer(PlannedHere("bucket", None, 2, 0.01, 64, None), ("row", "bucket"))
    made = list(packer(batches(keys, 10_000)))
    assert len(made) == 3
    tables = list(unpacked(made))
    assert len(tables) > 3
    assert sum(map(len, tables)) == 600_000
    (whole,) = unpacked(made, all_at_once=True)
    assert len(whole) == 600_000
