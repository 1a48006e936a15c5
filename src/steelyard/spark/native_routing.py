"""Route rows by a plan with Spark expressions; no row passes through Python.

A plan enters; a frame with the bin of each row leaves. `RoutingPlan.route` returns the same bins
for the same buckets and salts. A row that must meet all rows of its bucket is copied to every bin
of the bucket.
"""

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import RoutingPlan
from steelyard.spark.columns import HIDDEN, named
from steelyard.spark.constant_arrays import constant_array

BIN = f"{HIDDEN}bin"
_BUCKET = f"{HIDDEN}bucket"


def bin_of(plan: RoutingPlan, bucket: Column, salt: Column) -> Column:
    """Return the bin of a row.

    The bin of a whole bucket comes from a table. In a split bucket, the high half of the salt is a
    position between 0 and 2^32. A guide table gives the first cell that may contain the position,
    and a few steps lead to the cell that does.
    """
    tables = plan.tables()
    first = F.get(constant_array(tables.first), bucket)
    if not tables.bins.size:
        return first
    rank = F.bitwise_not(first)
    place = F.shiftrightunsigned(salt, 32)
    shift = F.get(constant_array(tables.guide_shifts), rank)
    mark = F.call_function("shiftright", place, shift).cast("int")
    cell = F.get(
        constant_array(tables.guide), F.get(constant_array(tables.guide_starts), rank) + mark
    )
    beyond = F.shiftleft(rank.cast("long"), 32) + place
    ends = constant_array(tables.ends)
    # Each step is one term that starts from the same cell. If each step used the result of the
    # step before, the expression would double with every step.
    steps = [(beyond >= F.get(ends, cell + step)).cast("int") for step in range(tables.steps)]
    split = F.get(constant_array(tables.bins), reduce(add, steps, cell))
    return F.when(first < 0, split).otherwise(first)


def with_bin(frame: DataFrame, plan: RoutingPlan, bucket: Column, salt: Column) -> DataFrame:
    """Add the column `BIN`, the bin of each row.

    Args:
        frame: The rows.
        plan: The routing plan.
        bucket: The bucket of a row's key.
        salt: A number that selects a cell of a split bucket.

    Returns:
        The frame with one more column.
    """
    return frame.withColumn(BIN, bin_of(plan, bucket, salt))


def with_every_bin(
    frame: DataFrame,
    plan: RoutingPlan,
    bucket: Column,
    *,
    into: str = BIN,
    number: str | None = None,
) -> DataFrame:
    """Add a column with a bin, and repeat each row once for each bin of its bucket.

    Only rows of split buckets appear more than once.

    Args:
        frame: The rows.
        plan: The routing plan.
        bucket: The bucket of a row.
        into: The name of the new column.
        number: The name of another new column, which numbers the bins of a row from 0; None for no
            such column.

    Returns:
        The frame with the new columns.
    """
    if not plan.has_splits and number is None:
        return frame.withColumn(into, bin_of(plan, bucket, F.lit(0).cast("long")))
    starts, bins = plan.bins_by_bucket()
    first = F.get(constant_array(starts), F.col(_BUCKET))
    end = F.get(constant_array(starts), F.col(_BUCKET) + 1)
    own = F.slice(constant_array(bins), first + 1, end - first)  # Spark counts from 1 here
    every = F.explode(own).alias(into) if number is None else F.posexplode(own).alias(number, into)
    return frame.withColumn(_BUCKET, bucket).select(*map(named, frame.columns), every)
