"""A plan as a Spark expression: no Python touches a row.

A plan enters; a frame with the bin of each row leaves. It is what `RoutingPlan.route` gives for the
same buckets and salts. A row that must meet all others of its bucket gets every bin of the bucket.
"""

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.routing_plan import RoutingPlan
from steelyard.spark.columns import HIDDEN, named

BIN = f"{HIDDEN}bin"
_BUCKET, _SALT, _CELL = f"{HIDDEN}bucket", f"{HIDDEN}salt", f"{HIDDEN}cell"


def with_bin(frame: DataFrame, plan: RoutingPlan, bucket: Column, salt: Column) -> DataFrame:
    """The frame with one more column, `BIN`.

    A whole bucket is looked up. For a split one the salt's high half is a place between 0 and
    2^32: a guide gives the first cell that it may fall into, and a step or two the right one.
    """
    columns = frame.columns
    tables = plan.tables()
    frame = frame.withColumn(_BUCKET, F.get(_array(tables.first), bucket))
    if tables.ends.size:
        place = F.shiftrightunsigned(F.col(_SALT), 32)
        rank = F.bitwise_not(F.col(_BUCKET))
        mark = F.shiftright(place, 32 - tables.guide_bits).cast("int")
        slot = F.shiftleft(rank, tables.guide_bits) + mark
        is_split = F.col(_BUCKET) < 0
        frame = frame.withColumn(_SALT, F.when(is_split, salt))
        frame = frame.withColumn(_CELL, F.when(is_split, F.get(_array(tables.guide), slot)))
        for _ in range(tables.steps):
            is_behind = place >= F.get(_array(tables.ends), F.col(_CELL))
            frame = frame.withColumn(_CELL, F.col(_CELL) + is_behind.cast("int"))
        split = F.get(_array(tables.bins), F.col(_CELL))
        found = F.when(is_split, split).otherwise(F.col(_BUCKET))
    else:
        found = F.col(_BUCKET)
    frame = frame.withColumn(BIN, found)
    return frame.select(*map(named, [*columns, BIN]))


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
