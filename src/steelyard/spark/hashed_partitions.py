"""Choose the partition of a row where Spark itself can only hash.

`repartition(n, columns)` sends a row to the partition `pmod(hash(columns), n)`, where `hash` is
Murmur3. The number of a partition enters; a value that Spark hashes to this partition leaves.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

from steelyard.spark.constant_arrays import constant_array

_BITS = 32
_MASK = (1 << _BITS) - 1
_FIRST, _SECOND, _ADDED = 0xCC9E2D51, 0x1B873593, 0xE6546B64
"""The constants with which Murmur3 mixes a value into a hash."""
_LAST = (0x85EBCA6B, 0xC2B2AE35)
"""The factors of the last step of Murmur3, in the order in which they are applied."""
_INTEGER_BYTES = 4
_SEED = 42
"""The hash with which Spark begins."""


@cache
def labels(partitions: int) -> tuple[int, ...]:
    """Return for each partition an integer that `repartition(partitions, label)` sends to it.

    The labels are the smallest such integers. Delegated streams keep their state by label, so
    checkpoints depend on them: never change them.

    >>> labels(4)
    (12, 6, 2, 0)
    >>> rows = spark.createDataFrame([(label,) for label in labels(4)], "label int")
    >>> [row[0] for row in rows.selectExpr("pmod(hash(label), 4)").collect()]
    [0, 1, 2, 3]
    """
    found: dict[int, int] = {}
    integers = np.arange(64 * partitions + 64)
    while len(found) < partitions:
        places = _hashed(integers) % partitions
        for place, first in zip(*np.unique(places, return_index=True), strict=True):
            found.setdefault(int(place), int(integers[first]))
        integers = integers + integers.size
    return tuple(found[place] for place in range(partitions))


def label_of(partition: Column, partitions: int) -> Column:
    """Return the label of a row's partition."""
    return F.get(constant_array(np.array(labels(partitions), np.int32)), partition)


def completion(keys: list[Column], partition: Column, partitions: int) -> Column:
    """Return an integer with which `repartition(partitions, *keys, integer)` gives this partition.

    It depends on the keys and on the partition only, and it is different in every partition. A join
    by the keys and this integer therefore joins rows of one partition, and needs no other shuffle:
    Spark sees that both frames are partitioned by all columns of the join.

    Args:
        keys: The columns of the key.
        partition: The number of the row's partition, from 0.
        partitions: The number of partitions.
    """
    wanted = F.get(constant_array(np.array(_mixed(partitions), np.int64)), partition)
    mixed = wanted.bitwiseXOR(F.hash(*keys).cast("long").bitwiseAND(F.lit(_MASK)))
    product = _times(mixed, _inverse(_SECOND))
    turned = F.shiftrightunsigned(product, 15) + F.shiftleft(product.bitwiseAND(F.lit(0x7FFF)), 17)
    value = _times(turned, _inverse(_FIRST))
    sign = F.lit(2 ** (_BITS - 1))
    return (value.bitwiseXOR(sign) - sign).cast("int")


def _hashed(integers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Spark's hash of non-negative integers, as a signed number."""
    mixed = _left(integers * _FIRST, 15) * _SECOND & _MASK
    hashed = (_left(mixed ^ _SEED, 13) * 5 + _ADDED & _MASK) ^ _INTEGER_BYTES
    for shift, factor in ((16, _LAST[0]), (13, _LAST[1])):
        hashed = (hashed ^ hashed >> shift) * factor & _MASK
    unsigned = (hashed ^ hashed >> 16).astype(np.uint32)
    signed: NDArray[np.int64] = unsigned.astype(np.int32).astype(np.int64)
    return signed


def _left(values: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """Rotate the last 32 bits of each value to the left."""
    values = values & _MASK
    rotated: NDArray[np.int64] = values << places & _MASK | values >> _BITS - places
    return rotated


def _times(value: Column, factor: int) -> Column:
    """Return the last 32 bits of a product; every intermediate number fits into a long."""
    low = value * F.lit(factor & 0xFFFF)
    high = (value * F.lit(factor >> 16)).bitwiseAND(F.lit(0xFFFF))
    return (low + F.shiftleft(high, 16)).bitwiseAND(F.lit(_MASK))


def _mixed(partitions: int) -> list[int]:
    """Return for each partition the mixed value that leads from the hash 0 to that partition.

    For another hash, the mixed value is the exclusive or of both.
    """
    hashes = (_unfinished(number) for number in range(partitions))
    return [_rotated((found - _ADDED) * _inverse(5), 13) for found in hashes]


def _unfinished(hashed: int) -> int:
    """Invert the last step of Murmur3."""
    hashed ^= hashed >> 16
    hashed = hashed * _inverse(_LAST[1]) & _MASK
    hashed ^= hashed >> 13 ^ hashed >> 26
    hashed = hashed * _inverse(_LAST[0]) & _MASK
    hashed ^= hashed >> 16
    return hashed ^ _INTEGER_BYTES


def _rotated(value: int, places: int) -> int:
    """Rotate the last 32 bits of a value to the right."""
    value &= _MASK
    return (value >> places) | (value << (_BITS - places) & _MASK)


def _inverse(factor: int) -> int:
    """Return the factor that undoes a multiplication in 32 bits."""
    return int(pow(factor, -1, 2**_BITS))
