"""Find the keys that are too large for one task, so that all other keys can stay whole.

A frame, its key and a planner enter; the hot keys and a plan that splits no other key leave. Each
hot key has its own bucket, after the buckets of all other keys.
"""

from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from steelyard.plans import Planner, RoutingPlan
from steelyard.spark.columns import HIDDEN, Key, named
from steelyard.spark.repartitioning import amount_of, bucket_counts
from steelyard.spark.versions.interfaces import position_in

_AMOUNT, _HASH = f"{HIDDEN}amount", f"{HIDDEN}hash"


@dataclass(frozen=True)
class HotKeys:
    """The hot keys of a frame, and a plan that splits only them.

    Args:
        key: The key columns and the buckets of light keys.
        keys: The hot keys.
        hashes: The hashes of the hot keys; the first has the first bucket after those of `key`.
        plan: The plan for all buckets.
    """

    key: Key
    keys: tuple[Row, ...]
    hashes: tuple[int, ...]
    plan: RoutingPlan

    @classmethod
    def of(cls, frame: DataFrame, key: Key, planner: Planner, weight: str | None) -> "HotKeys":
        """Count by bucket, then by key in the buckets that are too large for one task.

        Args:
            frame: The rows.
            key: The key columns and the buckets of light keys.
            planner: Gives the number of bins, their capacities and epsilon.
            weight: The column with the weight of each row, or None.

        Returns:
            The hot keys and their plan.
        """
        counts = bucket_counts(frame, key, weight=weight)
        limit = counts.sum() / planner.capacities.sum() * planner.capacities.max()
        large = np.flatnonzero(counts > limit).tolist()
        found: list[Row] = []
        if large:
            own = frame.where(key.bucket().isin(large)).groupBy(*map(named, key.names))
            sums = own.agg(amount_of(weight).alias(_AMOUNT)).withColumn(_HASH, key.hashed())
            # Keys with the same hash have the same destination, so their amounts are added.
            pairs = zip(key.names, key.result_names, strict=True)
            values = F.struct(*(named(name).alias(result) for name, result in pairs))
            together = sums.groupBy(_HASH).agg(
                F.sum(_AMOUNT).alias(_AMOUNT), F.collect_list(values)
            )
            found = together.where(F.col(_AMOUNT) > limit).orderBy(_HASH).collect()
        hashes = tuple(row[0] for row in found)
        own_counts = np.array([float(row[1]) for row in found])
        for value, amount in zip(hashes, own_counts, strict=True):
            counts[value % key.buckets] -= amount
        counts = np.concatenate([np.maximum(counts, 0.0), own_counts])
        with_own = Planner(planner.bins, planner.epsilon, counts.size, planner.capacities)
        plan = with_own.update(counts)
        keys = tuple(hot for row in found for hot in row[2])
        return cls(key, keys, hashes, plan.with_whole(range(key.buckets)))

    def bucket(self) -> Column:
        """Return the bucket of a row's key: a hot key has its own, others have that of the hash."""
        if not self.hashes:
            return self.key.bucket()
        known = F.array(*map(F.lit, self.hashes))
        place = position_in(known, self.key.hashed())
        own = (place + (self.key.buckets - 1)).cast("int")
        return F.when(place > 0, own).otherwise(self.key.bucket())
