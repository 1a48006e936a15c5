"""Route rows by a plan with Spark expressions; no row passes through Python.

A plan enters; a frame with the bin of each row leaves. `RoutingPlan.route` returns the same bins
for the same buckets and salts. A row that must meet all rows of its bucket is copied to every bin
of the bucket.
"""

import numpy as np
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.plans import RoutingPlan
from steelyard.spark.columns import HIDDEN, named
from steelyard.spark.versions.printed_plans import unprinted_array

BIN = f"{HIDDEN}bin"
_BUCKET = f"{HIDDEN}bucket"


def bin_of(session: SparkSession, plan: RoutingPlan, bucket: Column, salt: Column) -> Column:
    """Return the bin of a row.

    Args:
        session: The session of the rows.
        plan: The routing plan.
        bucket: The bucket of a row's key.
        salt: A number that selects a cell of a split bucket.
    """
    table = plan.table()
    entries = unprinted_array(session, table.entries)
    if not table.steps:
        return F.get(entries, F.get(entries, bucket)).cast("int")
    return bin_in(entries, F.get(entries, bucket), salt, shift=table.shift, steps=table.steps)


def bin_in(entries: Column, entry: Column, salt: Column, *, shift: int, steps: int) -> Column:
    """Return the bin of a row from the entries of a `RoutingTable`.

    Args:
        entries: The entries, an array of longs.
        entry: The entry of the bucket of a row's key.
        salt: A number that selects a cell of a split bucket.
        shift: The shift of the table.
        steps: The steps of the table.
    """
    place = F.shiftrightunsigned(salt, 32)
    # Each step uses the step before once, because in `repartitionById` Spark computes every
    # occurrence: it does not look for common parts of expressions that contain subqueries.
    at = F.bitwise_not(entry) + F.shiftright(place, shift)
    for _ in range(steps):
        at = F.shiftright(F.get(entries, at) + place, 32)
    # A negative index gives null, so that the salt is computed in split buckets only.
    return F.coalesce(F.get(entries, entry), F.get(entries, at)).cast("int")


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
    return frame.withColumn(BIN, bin_of(frame.sparkSession, plan, bucket, salt))


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
        return frame.withColumn(
            into, bin_of(frame.sparkSession, plan, bucket, F.lit(0).cast("long"))
        )
    starts, bins = plan.bins_by_bucket()
    # One array: the place at which the bins of each bucket begin, counted from 1, and the bins.
    entries = np.concatenate([starts + starts.size + 1, bins]).astype(np.int32)
    table = unprinted_array(frame.sparkSession, entries)
    first = F.get(table, F.col(_BUCKET))
    own = F.slice(table, first, F.get(table, F.col(_BUCKET) + 1) - first)
    every = F.explode(own).alias(into) if number is None else F.posexplode(own).alias(number, into)
    return frame.withColumn(_BUCKET, bucket).select(*map(named, frame.columns), every)
