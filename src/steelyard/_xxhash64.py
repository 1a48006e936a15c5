"""XXH64 as Spark computes it, over whole Arrow buffers.

Buffers of keys and one seed per key enter; one hash per key leaves. A null key keeps its seed, as
in Spark's `xxhash64`. The hash of one column is the seed of the next column.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from steelyard._compiled import compiled

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def _little_endian_load(bits: int) -> Any:
    """Return a function that reads an unsigned integer of `bits` bits at any byte address."""

    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = ir.IntType(bits)
            pointer = builder.inttoptr(arguments[0], number.as_pointer())
            value = builder.load(pointer, align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.uint64(types.uintp), generate

    return load


_load64 = _little_endian_load(64)
_load32 = _little_endian_load(32)
_load8 = _little_endian_load(8)


@compiled
def _rotate(x: Any, by: Any) -> Any:
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@compiled
def _round(accumulator: Any, lane: Any) -> Any:
    return _rotate(accumulator + lane * PRIME_2, 31) * PRIME_1


@compiled
def _merge_round(accumulator: Any, lane: Any) -> Any:
    return (accumulator ^ _round(np.uint64(0), lane)) * PRIME_1 + PRIME_4


@compiled
def _avalanche(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(33))) * PRIME_2
    x = (x ^ (x >> np.uint64(29))) * PRIME_3
    return x ^ (x >> np.uint64(32))


@compiled
def _eight_bytes(x: Any, lane: Any) -> Any:
    return _rotate(x ^ _round(np.uint64(0), lane), 27) * PRIME_1 + PRIME_4


@compiled
def _four_bytes(x: Any, lane: Any) -> Any:
    return _rotate(x ^ (lane * PRIME_1), 23) * PRIME_2 + PRIME_3


@compiled
def _hash_bytes(address: Any, length: Any, seed: Any) -> Any:
    if length == 0:
        return _avalanche(seed + PRIME_5)
    end = address + length
    last = end - 1
    if length >= 32:
        a = seed + PRIME_1 + PRIME_2
        b = seed + PRIME_2
        c = seed
        d = seed - PRIME_1
        while address + 32 <= end:
            a = _round(a, _load64(address))
            b = _round(b, _load64(address + 8))
            c = _round(c, _load64(address + 16))
            d = _round(d, _load64(address + 24))
            address += 32
        x = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        x = _merge_round(_merge_round(_merge_round(_merge_round(x, a), b), c), d)
    else:
        x = seed + PRIME_5
    x += np.uint64(length)
    while address + 8 <= end:
        x = _eight_bytes(x, _load64(address))
        address += 8
    if address + 4 <= end:
        x = _four_bytes(x, _load32(address))
        address += 4
    # At most three bytes are left. The loop always computes three steps and discards the surplus
    # ones: a mispredicted branch costs more than a step.
    for _ in range(3):
        is_left = address < end
        byte = _load8(address if is_left else last)
        with_byte = _rotate(x ^ (byte * PRIME_5), 11) * PRIME_1
        x = with_byte if is_left else x
        address += 1
    return _avalanche(x)


@compiled
def hash_byte_strings(offsets: Any, data_address: Any, valid: Any, hashes: Any) -> None:
    """Chain the strings between consecutive `offsets` into `hashes`, in place."""
    for i in range(hashes.size):
        if valid.size == 0 or valid[i]:
            start = offsets[i]
            hashes[i] = _hash_bytes(
                types.uintp(data_address + start), offsets[i + 1] - start, hashes[i]
            )


@compiled
def hash_eight_bytes(values: Any, valid: Any, hashes: Any) -> None:
    """Chain 64-bit values into `hashes`, in place."""
    for i in range(hashes.size):
        if valid.size == 0 or valid[i]:
            hashes[i] = _avalanche(
                _eight_bytes(hashes[i] + PRIME_5 + np.uint64(8), np.uint64(values[i]))
            )


@compiled
def hash_four_bytes(values: Any, valid: Any, hashes: Any) -> None:
    """Chain 32-bit values into `hashes`, in place."""
    for i in range(hashes.size):
        if valid.size == 0 or valid[i]:
            hashes[i] = _avalanche(
                _four_bytes(hashes[i] + PRIME_5 + np.uint64(4), np.uint64(values[i]))
            )
