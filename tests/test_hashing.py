import datetime
import decimal
import itertools
import struct

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from steelyard.hashing import (
    buckets_of,
    coprime_steps,
    hash_key,
    hash_keys,
    mix64,
    seed_mask,
    spread,
)


def xxh64(data, seed=42):
    return xxhash.xxh64_intdigest(data, seed)


@given(st.lists(st.one_of(st.none(), st.text(max_size=80))))
def test_strings_hash_as_xxh64_of_their_bytes(keys):
    """Strings may be null, shorter or longer than the 32-byte blocks of XXH64."""
    expected = [42 if key is None else xxh64(key.encode()) for key in keys]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert expected == hash_keys(pa.array(keys, kind)).tolist()


@given(st.lists(st.one_of(st.none(), st.binary(max_size=100)), min_size=1), st.data())
def test_a_slice_of_an_array_hashes_its_own_values(keys, data):
    """Values of the buffer before the slice are ignored."""
    start = data.draw(st.integers(0, len(keys)))
    expected = [42 if key is None else xxh64(key) for key in keys[start:]]
    assert expected == hash_keys(pa.array(keys, pa.binary())[start:]).tolist()


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_longs_hash_as_eight_bytes(keys):
    """Python integers and 64-bit columns hash as Spark's longs."""
    expected = [42 if key is None else xxh64(struct.pack("<q", key)) for key in keys]
    assert expected == hash_keys(pa.array(keys, pa.int64())).tolist()


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.text()), st.one_of(st.none(), st.integers(0, 9))))
)
def test_the_hash_of_a_column_is_the_seed_of_the_next(keys):
    """A null passes the seed on."""
    expected = []
    for text, number in keys:
        seed = 42 if text is None else xxh64(text.encode())
        expected.append(seed if number is None else xxh64(struct.pack("<q", number), seed))
    texts, numbers = zip(*keys, strict=True) if keys else ((), ())
    assert (
        expected == hash_keys(pa.array(texts, pa.string()), pa.array(numbers, pa.int64())).tolist()
    )


def test_the_arrow_layout_of_a_column_does_not_change_its_hashes():
    """Chunks, dictionaries, numpy arrays, fixed-size binaries and extension types."""
    keys = ["a", None, "b", "a"]
    expected = hash_keys(keys).tolist()
    assert expected == hash_keys(pa.chunked_array([keys[:1], keys[1:]], pa.string())).tolist()
    assert expected == hash_keys(pa.array(keys).dictionary_encode()).tolist()
    assert expected == hash_keys(np.array(["a", None, "b", "a"], object)).tolist()
    fixed = pa.array([b"ab", b"cd"], pa.binary(2))
    assert [xxh64(b"ab"), xxh64(b"cd")] == hash_keys(fixed).tolist()
    identifiers = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16], pa.binary(16)))
    assert [xxh64(b"x" * 16)] == hash_keys(identifiers).tolist()


def test_a_dictionary_hashes_its_values():
    """Its indices and values may be null, and some values may be unused."""
    indices = pa.array([2, None, 0, 1, 2], pa.int8())
    coded = pa.DictionaryArray.from_arrays(indices, pa.array(["a", None, "c", "unused"]))
    plain = ["c", None, "a", None, "c"]
    assert hash_keys(plain).tolist() == hash_keys(coded).tolist()
    assert hash_keys(plain, plain).tolist() == hash_keys(coded, coded).tolist()
    assert hash_keys(plain[3:]).tolist() == hash_keys(coded[3:]).tolist()
    chunks = pa.chunked_array([coded[:2], coded[2:]])
    assert hash_keys(plain).tolist() == hash_keys(chunks).tolist()
    assert hash_keys(plain, plain).tolist() == hash_keys(chunks, plain).tolist()


def test_nanoseconds_and_32_bit_hashes_are_rejected():
    """Spark cannot represent nanoseconds, and hashes must have 64 bits."""
    with pytest.raises(ValueError, match="Spark stores times in microseconds"):
        hash_keys(pa.array([1], pa.timestamp("ns")))
    with pytest.raises(TypeError, match=r"hashes must be 64-bit integers, .* got int32"):
        buckets_of(np.array([1, 2], np.int32), 8)


def test_an_empty_column_has_no_hashes():
    for kind in (pa.string(), pa.int64(), pa.null()):
        assert hash_keys(pa.array([], kind)).size == 0


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([1], pa.uint64()),
        pa.array([datetime.time(1)]),
    ],
)
def test_types_that_spark_hashes_differently_are_rejected(keys):
    with pytest.raises(TypeError, match="a key cannot be of type"):
        hash_keys(keys)


def test_columns_of_unequal_length_are_rejected():
    """No columns are rejected too."""
    with pytest.raises(ValueError, match=r"columns of one length, got \[1, 2\]"):
        hash_keys([1], [1, 2])
    with pytest.raises(ValueError, match="at least one column of keys"):
        hash_keys()


def test_hashes_equal_those_of_spark(spark):
    """Compare every supported type with Spark, including nulls and several columns."""
    from pyspark.sql import functions as F

    from steelyard.spark.versions.arrow import from_arrow

    table = pa.table(
        {
            "string": pa.array(["", "a", "ünïcödé", "x" * 31, "x" * 32, "y" * 101, None]),
            "binary": pa.array([b"", b"\0", b"\xff" * 33, b"abc", b"12345678", b"z", None]),
            "long": pa.array([0, -1, 2**63 - 1, -(2**63), 42, 7, None]),
            "int": pa.array([0, -1, 2**31 - 1, -(2**31), 42, 7, None], pa.int32()),
            "short": pa.array([0, -1, 2**15 - 1, -(2**15), 42, 7, None], pa.int16()),
            "byte": pa.array([0, -1, 127, -128, 42, 7, None], pa.int8()),
            "bool": pa.array([True, False, True, False, True, True, None]),
            "double": pa.array([0.0, -0.0, float("nan"), -1.5, 1e300, float("inf"), None]),
            "float": pa.array([0.0, -0.0, float("nan"), -1.5, 1e30, 3.25, None], pa.float32()),
            "date": pa.array([datetime.date(1970, 1, 1 + i) for i in range(6)] + [None]),
            "timestamp": pa.array(
                [datetime.datetime(1969 + i, 1, 1, 1, 2, 3, 456) for i in range(6)] + [None],
                pa.timestamp("us"),
            ),
            "decimal": pa.array(
                [decimal.Decimal(f"{i - 3}.25") for i in range(6)] + [None], pa.decimal128(18, 2)
            ),
            "wide_decimal": pa.array(
                [decimal.Decimal(s) for s in ("0", "127", "128", "-128", "-129", "9" * 30)]
                + [None],
                pa.decimal128(38, 0),
            ),
            "duration": pa.array(
                [datetime.timedelta(seconds=i - 2, microseconds=i) for i in range(6)] + [None]
            ),
        }
    )
    frame = from_arrow(spark, table)
    names = table.column_names
    hashes = [F.xxhash64(name).alias(name) for name in names]
    rows = frame.select(*hashes, F.xxhash64(*names).alias("all")).collect()
    for name in names:
        assert [row[name] for row in rows] == hash_keys(table[name]).astype(np.int64).tolist(), name
    chained = hash_keys(*(table[name] for name in names)).astype(np.int64).tolist()
    assert [row["all"] for row in rows] == chained


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 2**31 - 1))
def test_buckets_are_the_positive_remainder_of_the_signed_hash(hashes, buckets):
    """Spark computes buckets as pmod of the long that xxhash64 returns."""
    expected = [h % buckets for h in hashes]
    assert expected == buckets_of(np.array(hashes, np.int64), buckets).tolist()
    assert expected == buckets_of(np.array(hashes, np.int64).view(np.uint64), buckets).tolist()


@given(st.integers(1, 300))
def test_steps_visit_every_bin(bins):
    """A step returns to a bin only after all other bins."""
    for step in coprime_steps(bins).tolist():
        assert bins == len({i * step % bins for i in range(bins)})


def test_one_key_hashes_as_in_a_column():
    """`hash_key` returns the same number as `hash_keys`."""
    assert hash_keys(["a"], [1])[0] == hash_key("a", 1)


def test_seeds_give_unrelated_masks():
    """The masks of consecutive seeds differ in about half of their bits."""
    masks = [int(seed_mask(seed)) for seed in range(100)]
    flips = [(a ^ b).bit_count() for a, b in itertools.pairwise(masks)]
    assert 28 <= np.mean(flips) <= 36


def test_mixing_is_a_bijection_on_a_sample():
    """No two of a million numbers have the same result."""
    numbers = np.arange(1_000_000, dtype=np.uint64)
    assert numbers.size == np.unique(mix64(numbers)).size


@given(st.integers(0, 10**9), st.integers(2, 500))
def test_spread_salts_leave_no_wide_gap(first, count):
    """Consecutive numbers become salts whose gaps on the circle are at most 3 / count."""
    salts = np.sort(spread(np.arange(first, first + count))).astype(float) / 2**64
    gaps = np.diff(np.append(salts, salts[0] + 1))
    assert gaps.max() <= 3 / count
