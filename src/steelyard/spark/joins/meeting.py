"""Send the rows of both frames to the bins of a plan, and join them there.

Two frames with key columns of the same names and a `JoinPlan` enter; the joined rows leave. Spark
shuffles each frame once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from steelyard.plans.join_plan import JoinPlan
from steelyard.spark.columns import HIDDEN, Key, named
from steelyard.spark.joins.join_types import JoinType
from steelyard.spark.joins.match_counts import has_key
from steelyard.spark.joins.unmatched import (
    BIG_ROLE,
    SMALL_ROLE,
    big_witnesses,
    needs_roles,
    once,
    small_witnesses,
    with_owners,
)
from steelyard.spark.native_routing import BIN, bin_of, with_bin, with_every_bin
from steelyard.spark.versions.partitions import can_join_in_place, to_joined_partitions

_HASH, _COLUMN, _NUMBER = (f"{HIDDEN}{name}" for name in ("hash", "column", "number"))


@dataclass(frozen=True)
class Meeting:
    """A join by a plan.

    Args:
        key: The key columns, which both frames have, and the number of buckets.
        kinds: Their types.
        plan: The plan.
        how: The type of the join.
    """

    key: Key
    kinds: Sequence[DataType]
    plan: JoinPlan
    how: JoinType

    @property
    def has_roles(self) -> bool:
        """Whether copies of rows without a match must be dropped."""
        return needs_roles(self.plan, self.how)

    def routed(self, big: DataFrame, salt: Column) -> DataFrame:
        """Return the rows of `big`, each with one bin of each column of its bucket."""
        bucket, column, number = self.key.bucket(), self.key.bucket(), F.lit(0)
        if self.plan.has_grids:
            column, number = F.col(_COLUMN), F.col(_NUMBER)
            big = with_every_bin(big, self.plan.columns, bucket, into=_COLUMN, number=_NUMBER)
        routed = with_bin(big, self.plan.cells, column, salt)
        if self.has_roles:
            routed = with_owners(routed, BIG_ROLE, number, self.key.names)
        return routed.drop(_COLUMN, _NUMBER)

    def copied(self, small: DataFrame, salt: Column | None) -> DataFrame:
        """Return the rows of `small`, once for each bin of their column.

        Args:
            small: The rows.
            salt: A number that selects a column of a bucket; None if there is none. By this number,
                rows without a key are distributed evenly, because they match nothing.
        """
        plan, column = self.plan, self.key.bucket()
        if plan.has_grids:
            assert salt is not None
            column = bin_of(small.sparkSession, plan.columns, column, salt)
        number = _NUMBER if self.has_roles else None
        copied = with_every_bin(small, plan.cells, column, number=number)
        if self.has_roles:
            copied = with_owners(copied, SMALL_ROLE, F.col(_NUMBER), self.key.names).drop(_NUMBER)
        if self.how.keeps_small and salt is not None:
            anywhere = F.pmod(salt, F.lit(plan.cells.bins)).cast("int")
            bin_ = F.when(has_key(self.key.names), F.col(BIN)).otherwise(anywhere)
            copied = copied.withColumn(BIN, bin_)
        return copied

    def joined(self, routed: DataFrame, copied: DataFrame) -> DataFrame:
        """Return the joined rows: the key, the other columns of `routed`, those of `copied`."""
        names, workers = self.key.names, self.plan.cells.bins
        if can_join_in_place(routed.sparkSession, self.kinds):
            keys = [named(name) for name in names]
            routed, copied = (to_joined_partitions(f, workers, BIN, keys) for f in (routed, copied))
            # Spark sorts by the key first, because the bin is the same in most rows of a task.
            joined = routed.join(copied, [*names, BIN], self.how.value).drop(BIN)
        else:
            joined = self._joined_by_hash(routed, copied)
        return once(joined) if self.has_roles else joined

    def with_witnesses(
        self, routed: DataFrame, copied: DataFrame, big: DataFrame, small: DataFrame
    ) -> tuple[DataFrame, DataFrame]:
        """Return both frames with the witnesses that the owners of rows need."""
        if self.has_roles and self.how.keeps_small:
            witnesses = big_witnesses(big, self.key, self.plan)
            routed = routed.unionByName(witnesses, allowMissingColumns=True)
        if self.has_roles and self.how.keeps_big and self.plan.has_grids:
            witnesses = small_witnesses(small, self.key, self.plan)
            copied = copied.unionByName(witnesses, allowMissingColumns=True)
        return routed, copied

    def _joined_by_hash(self, routed: DataFrame, copied: DataFrame) -> DataFrame:
        """Join by the bin and the hash of the key, and compare the keys of rows of equal hashes."""
        names, workers = self.key.names, self.plan.cells.bins
        hashed = F.when(has_key(names), Key(names, 1).hashed())  # null keys match nothing
        others = [name for name in routed.columns if name not in names]
        routed, copied = (
            to_joined_partitions(frame.withColumn(_HASH, hashed), workers, BIN, [F.col(_HASH)])
            for frame in (routed.select(*map(named, [*names, *others])), copied)
        )
        hidden = {name: f"{HIDDEN}small_{i}" for i, name in enumerate([BIN, _HASH, *names])}
        equal = [named(name) == F.col(hidden[name]) for name in (BIN, _HASH)]
        for name in names:
            # Two comparisons, because Spark would take an equality for a column of the join.
            equal += [named(name) <= F.col(hidden[name]), named(name) >= F.col(hidden[name])]
        how = self.how
        joined = routed.join(copied.withColumnsRenamed(hidden), reduce(and_, equal), how.value)
        if how is JoinType.RIGHT:
            joined = joined.withColumns({name: F.col(hidden[name]) for name in names})
        if how is JoinType.FULL:
            either = {name: F.coalesce(named(name), F.col(hidden[name])) for name in names}
            joined = joined.withColumns(either)
        return joined.drop(BIN, _HASH, *hidden.values())
