"""Count the rows of both frames of a join by bucket, and the pairs of suspicious buckets.

Frames with their key columns enter; counts leave, for the estimates of `plans/join_work.py`.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans.bucket_counts import Floats
from steelyard.plans.join_work import Buckets, SmallCounts
from steelyard.spark.columns import HIDDEN, Key, named
from steelyard.spark.versions.arrow import to_arrow

_BUCKET, _HASH = f"{HIDDEN}bucket", f"{HIDDEN}hash"
_ROWS, _OTHERS, _MOST, _KEYS = (f"{HIDDEN}{name}" for name in ("rows", "others", "most", "keys"))


def has_key(names: Sequence[str]) -> Column:
    """Return whether no key column is null; a null matches nothing."""
    return reduce(and_, (named(name).isNotNull() for name in names))


def is_in(buckets: Buckets, bucket: Column) -> Column:
    """Return whether a bucket is one of these."""
    return bucket.isin(buckets.tolist())


def small_counts(small: DataFrame, key: Key, watched: Buckets, sample: float | None) -> SmallCounts:
    """Count the rows of each bucket, and the keys of watched buckets, in one pass over the keys.

    Args:
        small: The rows.
        key: The key columns and the number of buckets.
        watched: The buckets whose keys are counted one by one.
        sample: The fraction of the rows to count, or None for all.
    """
    own_hash = F.when(is_in(watched, F.col(_BUCKET)), F.col(_HASH))
    keys = _hashed(small, key, sample, seed=1).groupBy(_BUCKET, own_hash.alias(_HASH))
    by_bucket = keys.agg(F.count(F.lit(1)).alias(_ROWS)).groupBy(_BUCKET)
    counted = to_arrow(
        by_bucket.agg(
            F.sum(_ROWS).cast("double").alias(_ROWS),
            F.max(_ROWS).cast("double").alias(_MOST),
            F.count(F.lit(1)).cast("double").alias(_KEYS),
        )
    )
    numbers = np.zeros((3, key.buckets))
    for found, name in zip(numbers, (_ROWS, _MOST, _KEYS), strict=True):
        found[counted[_BUCKET].to_numpy()] = counted[name].to_numpy()
    rows, most, keys_of = numbers
    part = sample or 1.0
    return SmallCounts(watched, rows / part, most / part, keys_of)


def pairs_of(
    big: DataFrame, small: DataFrame, key: Key, buckets: Buckets, sample: float | None
) -> Floats:
    """Count the pairs of rows with equal keys in some buckets; the other numbers are 0.

    Args:
        big: The rows of one side.
        small: The rows of the other side.
        key: The key columns, which both frames have, and the number of buckets.
        buckets: The buckets to count.
        sample: The fraction of the rows to count, or None for all.
    """
    rows, others = (
        _hashed(frame, key, sample, seed=1 - is_big)
        .where(is_in(buckets, F.col(_BUCKET)))
        .select(_BUCKET, _HASH, F.lit(is_big).alias(_ROWS), F.lit(1 - is_big).alias(_OTHERS))
        for frame, is_big in ((big, 1), (small, 0))
    )
    sums = [F.sum(name).cast("double").alias(name) for name in (_ROWS, _OTHERS)]
    keys = rows.union(others).groupBy(_BUCKET, _HASH).agg(*sums)
    product = F.sum(F.col(_ROWS) * F.col(_OTHERS)).alias(_ROWS)
    counted = to_arrow(keys.groupBy(_BUCKET).agg(product))
    pairs = np.zeros(key.buckets)
    # A pair is in the sample if both of its rows are.
    pairs[counted[_BUCKET].to_numpy()] = counted[_ROWS].to_numpy() / (sample or 1.0) ** 2
    return pairs


def _hashed(frame: DataFrame, key: Key, sample: float | None, seed: int) -> DataFrame:
    """Return the bucket and the hash of each row whose key has no null."""
    rows = frame if sample is None else frame.sample(fraction=sample, seed=seed)
    rows = rows.where(has_key(key.names))
    return rows.select(key.bucket().alias(_BUCKET), key.hashed().alias(_HASH))
