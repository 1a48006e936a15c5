"""Find the names of the keys that a plan splits, for people who read the plan.

A frame and its plan enter; the most frequent keys of the largest split buckets leave.
"""

from collections.abc import Iterable

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from steelyard.key_text import WIDTH, Name
from steelyard.plans import RoutingPlan
from steelyard.plans.description import LISTED, BucketKey
from steelyard.spark.columns import HIDDEN, Key, amount_of, named
from steelyard.spark.versions.arrow import to_arrow

_SAMPLED_ROWS = 20_000
"""Approximate number of rows of split buckets that are counted by key."""

_MOST_KEYS = 3
"""Most keys that are named for a bucket."""

_LEAST_SHARE = 0.1
"""Share of a bucket from which on a key is named besides the most frequent one."""

_LETTERS = 4 * WIDTH
"""Number of characters that are fetched of each key column."""


def names_of_split_buckets(
    frame: DataFrame, plan: RoutingPlan, key: Key, *, weight: str | None, sample: float | None
) -> dict[int, tuple[BucketKey, ...]]:
    """Count the keys of the largest split buckets, in a sample of their rows.

    Rows of other buckets are skipped. Weighted rows are all counted, because a few of them may
    weigh more than all others.

    Args:
        frame: The rows that the plan was made for.
        plan: The plan, with its counts.
        key: The key columns and the number of buckets.
        weight: The column with the weight of each row, or None.
        sample: The fraction of the rows that were counted, or None for all.

    Returns:
        The most frequent keys of each bucket; a bucket may be missing if it has few rows.
    """
    if plan.counts is None or not plan.splits:
        return {}
    split = np.array(list(plan.splits))
    largest = split[np.argsort(-plan.counts[split], kind="stable")[:LISTED]]
    fraction = 1.0 if sample is None else sample
    if weight is None:
        fraction *= min(1.0, _SAMPLED_ROWS / plan.counts[largest].sum())
    rows = frame if fraction == 1 else frame.sample(fraction=fraction, seed=0)
    return _most_frequent(rows.where(key.bucket().isin(largest.tolist())), key, weight)


def _most_frequent(
    rows: DataFrame, key: Key, weight: str | None
) -> dict[int, tuple[BucketKey, ...]]:
    """Return the most frequent keys of each bucket."""
    bucket, amount, name = (f"{HIDDEN}{part}" for part in ("bucket", "amount", "name"))
    known = F.coalesce(amount_of(weight), F.lit(0.0))  # null where all weights are null
    by_key = rows.groupBy(*map(named, key.names)).agg(known.alias(amount))
    by_key = by_key.select(
        key.bucket().alias(bucket), amount, key_as_text(rows, key.names).alias(name)
    )
    # In descending order of the amounts; keys with equal amounts in the order of their names.
    in_order = F.sort_array(F.collect_list(F.struct((-F.col(amount)).alias(amount), name)))
    by_bucket = by_key.groupBy(bucket).agg(
        F.sum(amount).alias("total"), F.slice(in_order, 1, _MOST_KEYS).alias("keys")
    )
    return {
        row[bucket]: tuple(
            BucketKey(decoded(found[name]), -found[amount] / row["total"])
            for place, found in enumerate(row["keys"])
            if place == 0 or -found[amount] >= _LEAST_SHARE * row["total"]
        )
        for row in to_arrow(by_bucket).to_pylist()
        if row["total"] > 0
    }


def key_as_text(frame: DataFrame, names: tuple[str, ...]) -> Column:
    """Return the columns of a key as an array of short texts; binary values in hexadecimal.

    Texts may be invalid UTF-8, so they are bytes.
    """
    return F.array(*(_text(frame, name).cast("binary") for name in names))


def decoded(texts: Iterable[bytes | None]) -> Name:
    r"""Decode the columns of a key; bytes that are not UTF-8 become escape sequences.

    >>> decoded([b"caf\xc3\xa9", b"\xff!", None])
    ('café', '\\xff!', None)
    """
    return tuple(None if t is None else t.decode("utf-8", "backslashreplace") for t in texts)


def _text(frame: DataFrame, name: str) -> Column:
    column = named(name)
    if isinstance(frame.schema[name].dataType, BinaryType):
        return F.concat(F.lit("0x"), F.hex(F.substring(column, 1, _LETTERS // 2)))
    return F.substring(column.cast("string"), 1, _LETTERS)
