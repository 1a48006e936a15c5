"""Return each row without a match once, although the plan copies rows to several bins.

A copy of a row sees only the other rows of its bin, so it cannot know whether another copy has a
match. Each row therefore has one copy that is its *owner*. The bin of an owner also gets a
*witness* for each key of the other frame in the bucket: a row with this key and nothing else. An
owner without a match has no witness, so no row of the other frame has its key.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans.join_plan import JoinPlan
from steelyard.spark.columns import HIDDEN, Key, named
from steelyard.spark.joins.join_types import JoinType
from steelyard.spark.joins.match_counts import has_key, is_in
from steelyard.spark.native_routing import BIN, with_every_bin
from steelyard.spark.versions.printed_plans import unprinted_array

BIG_ROLE, SMALL_ROLE = f"{HIDDEN}big_role", f"{HIDDEN}small_role"
OWNER, COPY, WITNESS = 0, 1, 2

_COLUMN = f"{HIDDEN}column"


def needs_roles(plan: JoinPlan, how: JoinType) -> bool:
    """Whether the plan copies rows that are in the result if they have no match."""
    copies_small = how.keeps_small and plan.cells.has_splits
    return copies_small or (how.keeps_big and plan.has_grids)


def with_owners(frame: DataFrame, role: str, number: Column, names: Sequence[str]) -> DataFrame:
    """Add the role of each copy of a row; of rows that match nothing, keep only the owner.

    Args:
        frame: The copies of the rows.
        role: The name of the new column.
        number: The number of a copy, from 0.
        names: The columns of the key.
    """
    is_owner = number == 0
    frame = frame.withColumn(role, F.when(is_owner, OWNER).otherwise(COPY).cast("byte"))
    return frame.where(is_owner | has_key(names))


def big_witnesses(rows: DataFrame, key: Key, plan: JoinPlan) -> DataFrame:
    """Return a witness for each key of `big`, in the first bin of each column of its bucket."""
    witnesses = _keys(rows, key).where(is_in(plan.divided.nonzero()[0], key.bucket()))
    witnesses = with_every_bin(witnesses, plan.columns, key.bucket(), into=_COLUMN)
    starts, bins = plan.cells.bins_by_bucket()
    first = F.get(unprinted_array(rows.sparkSession, bins[starts[:-1]]), F.col(_COLUMN))
    return _as_witnesses(witnesses.withColumn(BIN, first).drop(_COLUMN), BIG_ROLE)


def small_witnesses(small: DataFrame, key: Key, plan: JoinPlan) -> DataFrame:
    """Return a witness for each key of `small`, in all bins of the first column of its bucket."""
    witnesses = _keys(small, key).where(is_in(plan.gridded.nonzero()[0], key.bucket()))
    starts, columns = plan.columns.bins_by_bucket()
    first = F.get(unprinted_array(small.sparkSession, columns[starts[:-1]]), key.bucket())
    return _as_witnesses(with_every_bin(witnesses, plan.cells, first), SMALL_ROLE)


def once(joined: DataFrame) -> DataFrame:
    """Drop the pairs of witnesses, and copies without a match that are not owners."""
    big, small = F.col(BIG_ROLE), F.col(SMALL_ROLE)
    is_pair = (big != WITNESS) & (small != WITNESS)
    is_kept = F.when(big.isNull(), small == OWNER).when(small.isNull(), big == OWNER)
    return joined.where(is_kept.otherwise(is_pair)).drop(BIG_ROLE, SMALL_ROLE)


def _keys(frame: DataFrame, key: Key) -> DataFrame:
    # The filter by the bucket follows, and Spark moves it before the removal of duplicates.
    return frame.select(*map(named, key.names)).where(has_key(key.names)).distinct()


def _as_witnesses(witnesses: DataFrame, role: str) -> DataFrame:
    return witnesses.withColumn(role, F.lit(WITNESS).cast("byte"))
