"""The 64-bit hash of a key, its bucket, and its sequence of choices.

Arrow arrays of keys enter; unsigned 64-bit hashes leave. They equal Spark's `xxhash64`, which shows
them as signed longs. Two properties of a key are derived from its hash and decide its destination:

- its **bucket**: one of a few thousand groups of keys that a `RoutingPlan` routes together;
- its **sequence of choices**: the bins that it may go to, in order of preference.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.validation import require_whole

SPARK_SEED = 42
"""The seed of Spark's `xxhash64`, and therefore the hash of a null key."""

MOST_BINS = 2**31 - 1
"""The largest number of bins: bins have 32-bit numbers."""

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1

Keys = Sequence[object] | NDArray[np.generic]
"""A column of keys: a list, a numpy array or an Arrow array (which is a sequence too)."""

Hashes = NDArray[np.uint64]


def hash_keys(*columns: Keys) -> Hashes:
    """Hash keys as Spark's `xxhash64(*columns)` does.

    Each column is an Arrow array, or a sequence that `pyarrow.array` accepts, of strings, binaries,
    whole numbers, floats, booleans, dates, timestamps or decimals. A null does not change the hash
    of the columns before it, so a key with nulls only hashes to 42. Python integers are longs.

    >>> hash_keys(["steelyard", "", None])
    array([ 6606356166021665928, 11002672306508523268,                   42],
          dtype=uint64)
    >>> hash_keys([1, 2]).astype("int64")
    array([-7001672635703045582, -3341702809300393011])
    """
    if not columns:
        raise ValueError("hash_keys needs at least one column of keys, got none")
    arrays = [_as_arrow(column) for column in columns]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise ValueError(f"hash_keys needs columns of one length, got {sorted(lengths)}")
    if len(arrays) == 1 and isinstance(arrays[0], pa.DictionaryArray):
        return _hash_dictionary(arrays[0])
    if not any(isinstance(array, pa.ChunkedArray) for array in arrays):
        return _hash_arrays(arrays)
    table = pa.Table.from_arrays(arrays, [str(i) for i in range(len(arrays))])
    pieces = [hash_keys(*batch.columns) for batch in table.to_batches()]
    return np.concatenate([np.empty(0, np.uint64), *pieces])


def _hash_arrays(arrays: list[pa.Array]) -> Hashes:
    # Imported here, because it needs numba. Executors do not call this function: Spark computes
    # the hashes there, so executors need no compiler.
    from steelyard import _xxhash64 as kernels

    hashes = np.full(len(arrays[0]), SPARK_SEED, np.uint64)
    for column in arrays:
        array = _decoded(column)
        valid = np.empty(0, np.bool_)
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
        data = _spark_layout(array)
        if isinstance(data, pa.Array):
            offsets, address = _offsets_and_address(data)
            kernels.hash_byte_strings(offsets, address, valid, hashes)
        elif data.itemsize == 8:
            kernels.hash_eight_bytes(data, valid, hashes)
        else:
            kernels.hash_four_bytes(data, valid, hashes)
    return hashes


def _hash_dictionary(array: pa.DictionaryArray) -> Hashes:
    """Hash each dictionary value once, and look the hashes up by index."""
    of_values = np.append(hash_keys(array.dictionary), np.uint64(SPARK_SEED))
    null = pa.scalar(len(array.dictionary), pa.int64())
    indices: NDArray[np.int64] = pc.fill_null(array.indices.cast(pa.int64()), null).to_numpy()
    return of_values[indices]


def hash_key(*key: object) -> int:
    """Hash one key; several arguments are the columns of one key.

    >>> hash_key("steelyard")
    6606356166021665928
    """
    return int(hash_keys(*([part] for part in key))[0])


def _as_arrow(column: Keys) -> pa.Array | pa.ChunkedArray:
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def _decoded(array: pa.Array) -> pa.Array:
    """Return the values of a dictionary array.

    Strings become large strings, because together they may exceed 2 GB.
    """
    if not isinstance(array, pa.DictionaryArray):
        return array
    values = array.dictionary
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        values = values.cast(pa.large_binary())
    return values.take(array.indices)


def _spark_layout(array: pa.Array) -> Any:
    """Return the bytes that Spark hashes.

    A numpy array has four or eight bytes per key; an Arrow array has texts of any length.
    """
    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return array.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary())
    if _is_text(kind):
        return array
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.uint32)
    if pa.types.is_boolean(kind):
        return _numbers(array.cast(pa.int32()))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        # Spark reads an unsigned column as the next larger signed type. It hashes types smaller
        # than 32 bits as 32-bit integers.
        wide = kind.bit_width == 64 or kind == pa.uint32()
        return _numbers(array.cast(pa.int64() if wide else pa.int32()))
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _numbers(array, canonical=True)
    if pa.types.is_date32(kind):
        return _numbers(array.view(pa.int32()))
    if pa.types.is_timestamp(kind):
        return _numbers(_microseconds(array, pa.timestamp("us", kind.tz)))
    if pa.types.is_duration(kind):
        return _numbers(_microseconds(array, pa.duration("us")))
    if pa.types.is_decimal128(kind):
        return _decimals(array)
    raise TypeError(
        f"a key cannot be of type {kind}: use strings, binaries, whole numbers up to 64 bits "
        "signed, floats, booleans, dates, timestamps or decimals up to 38 digits"
    )


def _microseconds(array: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return array.cast(kind).view(pa.int64())
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"Spark stores times in microseconds, and a key of type {array.type} does not fit "
            "exactly: cast the column to microseconds"
        ) from error


def _is_text(kind: pa.DataType) -> bool:
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_string or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _offsets_and_address(array: pa.Array) -> tuple[NDArray[np.integer], int]:
    """Return the offsets and the address of a text array's bytes.

    The address is valid while the array exists.
    """
    _, offsets, data = array.buffers()
    if offsets is None or not len(array):
        return np.zeros(len(array) + 1, np.int64), 0
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    width: type[np.integer[Any]] = np.int64 if is_large else np.int32
    numbers = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    return numbers, 0 if data is None else int(data.address)


def _numbers(array: pa.Array, *, canonical: bool = False) -> NDArray[np.generic]:
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, array.type))
    numbers = array.to_numpy(zero_copy_only=False)
    if canonical:  # Spark hashes -0.0 as 0.0, and all NaNs alike
        numbers = numbers + numbers.dtype.type(0)
        numbers[np.isnan(numbers)] = np.nan
    return np.ascontiguousarray(numbers).view(np.uint64 if numbers.itemsize == 8 else np.uint32)


def _decimals(array: pa.Array) -> Any:
    """Return unscaled numbers: longs up to 18 digits, else the shortest big-endian bytes."""
    unscaled = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, 16)
    unscaled = unscaled[array.offset : array.offset + len(array)]
    if array.type.precision <= 18:
        return np.ascontiguousarray(unscaled[:, :8]).view(np.uint64).ravel()
    return pa.array([_big_endian(number.tobytes()) for number in unscaled], pa.large_binary())


def _big_endian(little_endian: bytes) -> bytes:
    number = int.from_bytes(little_endian, "little", signed=True)
    magnitude = number if number >= 0 else ~number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def mix64(x: Hashes) -> Hashes:
    """Scramble 64-bit numbers: every input bit affects every output bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def seed_mask(seed: int) -> np.uint64:
    """Return the mask that combines a seed with hashes.

    Different seeds give unrelated sequences of choices.
    """
    require_whole("seed", seed, least=0, most=_MASK)
    return np.uint64(mix64(np.array([(int(seed) + 1) * _GOLDEN & _MASK], np.uint64))[0])


def choice_of(masked: Any, number: int, bins: int) -> Any:
    """Return the bin that is the first, second, ... choice of a key.

    Args:
        masked: The hash of the key, combined with the mask of the seed: a Python integer, or an
            array of 64-bit numbers.
        number: The number of the choice, from 1.
        bins: The number of bins.

    Returns:
        The bin, or an array of bins.
    """
    x = masked + (number * _GOLDEN & _MASK) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return ((x ^ (x >> 31)) >> 32) * bins >> 32


def buckets_of(hashes: NDArray[np.uint64] | NDArray[np.int64], buckets: int) -> NDArray[np.int32]:
    """Return the bucket of each hash, as Spark's `pmod(xxhash64(key), buckets)` does.

    >>> buckets_of(hash_keys(["steelyard", "balance"]), 8192)
    array([5256, 5987], dtype=int32)
    """
    require_whole("buckets", buckets, least=1, most=MOST_BINS)
    if hashes.dtype not in (np.uint64, np.int64):
        raise TypeError(
            f"hashes must be 64-bit integers, as hash_keys returns them, got {hashes.dtype}"
        )
    if buckets & (buckets - 1) == 0:
        return (hashes.view(np.uint64) & np.uint64(buckets - 1)).astype(np.int32)
    remainders: NDArray[np.int64] = hashes.view(np.int64) % np.int64(buckets)
    return remainders.astype(np.int32)


def coprime_steps(bins: int) -> NDArray[np.int32]:
    """Return the step sizes that visit each of `bins` bins before they return to the first bin.

    >>> coprime_steps(10)
    array([1, 3, 7, 9], dtype=int32)
    """
    steps = np.arange(1, max(bins, 2), dtype=np.int32)
    visits_all: NDArray[np.bool_] = np.gcd(steps, bins) == 1
    return steps[visits_all]


def spread(positions: Iterable[int] | NDArray[np.integer]) -> Hashes:
    """Turn consecutive numbers into evenly spread salts.

    The salts of n consecutive numbers leave no gap above 3/n of the whole range.

    >>> spread([0, 1, 2]) >> np.uint64(32)
    array([         0, 2654435769, 1013904242], dtype=uint64)
    """
    numbers = np.asarray(positions if isinstance(positions, np.ndarray) else list(positions))
    return numbers.astype(np.uint64) * np.uint64(_GOLDEN)
