"""A plan as a Spark expression: no Python touches a row.

A plan enters; a frame with the bin of each row leaves. It is what `RoutingPlan.route` gives for the
same buckets and salts. A row that must meet all others of its bucket gets every bin of the bucket.
"""

from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import RoutingPlan
from steelyard.spark.columns import HIDDEN, named

BIN = f"{HIDDEN}bin"
_BUCKET = f"{HIDDEN}bucket"


def bin_of(plan: RoutingPlan, bucket: Column, salt: Column) -> Column:
    """The bin of a row.

    A whole bucket is looked up. For a split one the salt's high half is a place between 0 and
    2^32: a guide gives the first cell that it may fall into, and a step or two the right one.
    """
    tables = plan.tables()
    first = F.get(_array(tables.first), bucket)
    if not tables.bins.size:
        return first
    rank = F.bitwise_not(first)
    place = F.shiftrightunsigned(salt, 32)
    shift = F.get(_array(tables.guide_shifts), rank)
    mark = F.call_function("shiftright", place, shift).cast("int")
    cell = F.get(_array(tables.guide), F.get(_array(tables.guide_starts), rank) + mark)
    beyond = F.shiftleft(rank.cast("long"), 32) + place
    ends = _array(tables.ends)
    # Written once for each step, all from the same cell: an expression of its own for each would
    # double with every one of them.
    steps = [(beyond >= F.get(ends, cell + step)).cast("int") for step in range(tables.steps)]
    split = F.get(_array(tables.bins), reduce(add, steps, cell))
    return F.when(first < 0, split).otherwise(first)


def with_bin(frame: DataFrame, plan: RoutingPlan, bucket: Column, salt: Column) -> DataFrame:
    """The frame with one more column, `BIN`."""
    return frame.withColumn(BIN, bin_of(plan, bucket, salt))


def with_every_bin(frame: DataFrame, plan: RoutingPlan, bucket: Column) -> DataFrame:
    """The frame with one more column, `BIN`, and every row once for each bin of its bucket.

    Only rows of split buckets are there more than once.
    """
    starts, bins = plan.bins_by_bucket()
    first = F.get(_array(starts), F.col(_BUCKET))
    behind = F.get(_array(starts), F.col(_BUCKET) + 1)
    own = F.slice(_array(bins), first + 1, behind - first)  # Spark counts from 1 here
    columns = map(named, frame.columns)
    return frame.withColumn(_BUCKET, bucket).select(*columns, F.explode(own).alias(BIN))


def _array(values: NDArray[np.integer]) -> Column:
    """An array that is the same for all rows: written as text, which Spark reads once.

    One literal for each value would be thousands of calls.
    """
    kind = "BIGINT" if values.dtype == np.int64 else "INT"
    text = ",".join(map(str, values.tolist()))
    return F.split(F.lit(text), ",").cast(f"ARRAY<{kind}>")
