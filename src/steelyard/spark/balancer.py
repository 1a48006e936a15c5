"""Balance each micro-batch of a stream by the counts of earlier micro-batches.

The frame of a micro-batch enters; the same rows leave, in partitions of equal weight. Spark counts
the rows by bucket while it moves them, and the next batch is planned from these counts.
"""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import Balance, RoutingPlan
from steelyard.spark.columns import (
    HIDDEN,
    Key,
    require_frame,
    require_names,
)
from steelyard.spark.native_routing import bin_of
from steelyard.spark.observed_counts import Observed
from steelyard.spark.repartitioning import bucket_counts, warn_of_equal_rows
from steelyard.spark.resolved_columns import ResolvedColumns, require_key_parts
from steelyard.spark.routing import planner_of, require_routing
from steelyard.spark.salts import Salts
from steelyard.spark.versions.partitions import to_partitions
from steelyard.validation import require_whole

_BUCKET = f"{HIDDEN}seen"

_PATIENCE = 1.0
"""Seconds to wait for the counts of the last batch; they arrive soon after its first action."""

_SEED = 1_003_792_688
"""With this seed the hash of Spark's count-min sketch has the factor 1.

The position of a bucket's counter in the sketch is then the number of the bucket.
"""

_HEADER = struct.Struct(">iqiiq")
"""The header of a sketch with one row: version, rows counted, depth, width, factor of its hash."""


class Balancer:
    """Repartitions every micro-batch by a plan that follows the stream; made for `foreachBatch`.

    Call `repartition` once for each batch and write the frame that it returns. The first batch that
    has rows is counted in a separate pass, because there are no earlier counts. Later batches need
    no separate pass: Spark counts the rows while the first action on a batch moves them. The next
    batch is planned from these counts and the earlier ones, which fade by `Balance(decay=...)`.
    With the default of 0.2, a key that becomes hot is split one batch later, over nearly the number
    of partitions that it needs. With 0, it is split over all of them one batch later; this suits
    large batches. Larger values smooth the random variation of small batches.

    A batch without an action adds no counts, and the next batch waits one second for them. A batch
    whose action failed adds the counts up to the failure. The counts affect the balance only: if an
    executor is lost they may be too high and the plan less even, but every row arrives once.

    Use one balancer for one query. On Spark Connect, `foreachBatch` works on a copy in another
    process, and `plan` is the plan of that copy. Spark Connect does not show how a micro-batch is
    computed there: pass `salt`, or hot keys stay whole.

    Args:
        key: The columns of the key, as in `steelyard.plan`.
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        salt: The columns that distinguish rows of one key, as in `steelyard.repartition`.
        routing: The settings of the balancing.

    Raises:
        TypeError: `key` or `salt` has a wrong type, or `routing` is not a `Balance`.
        ValueError: A setting is out of range.

    >>> balancer = Balancer("page", workers=4)
    >>> def write(batch, number):
    ...     balancer.repartition(batch).write.mode("append").parquet(f"{folder}/written")
    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> rows.write.parquet(f"{folder}/pages")
    >>> stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/pages")
    >>> query = stream.writeStream.foreachBatch(write).trigger(availableNow=True).start()
    >>> query.awaitTermination(60)
    True
    >>> spark.read.parquet(f"{folder}/written").count()
    10000
    """

    def __init__(
        self,
        *key: str | Column,
        workers: int,
        capacities: Sequence[float] | None = None,
        salt: Sequence[str] | None = None,
        routing: Balance = Balance(),  # noqa: B008  # frozen
    ) -> None:
        require_key_parts("key", key)
        if salt is not None:
            require_names("salt", salt)
        require_whole("workers", workers, least=1)
        require_routing(routing, ["balance"])
        self._planner = planner_of(routing, workers, capacities)
        self._key = key
        self._salt = None if salt is None else tuple(salt)
        self._sample = routing.sample
        self._has_counted = self._has_warned = False
        self._last: tuple[Observed, DataFrame] | None = None

    @property
    def plan(self) -> RoutingPlan:
        """The plan of the last batch; before the first batch, each key has one bin by its hash."""
        return self._planner.plan

    def repartition(self, batch: DataFrame) -> DataFrame:
        """Return the rows of a batch in balanced partitions, with the same columns.

        >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
        >>> balanced = Balancer("page", workers=4).repartition(rows)
        >>> sizes = balanced.groupBy(F.spark_partition_id()).count()
        >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
        [1.0, 1.0, 1.0, 1.0]
        """
        require_frame("batch", batch)
        if batch.isStreaming:
            raise ValueError(
                "batch must be a micro-batch, got a streaming DataFrame; call repartition in the "
                "function that you pass to foreachBatch"
            )
        found = ResolvedColumns.of(batch, self._key, salt=self._salt)
        key, salts = found.computed_key(self._planner.buckets), found.salts()
        if self._has_counted:
            self._learn()
            counted = Observed()
            # A separate column, because Spark does not compile a hash inside this aggregate.
            seen = batch.withColumn(_BUCKET, key.bucket())
            seen = seen.observe(counted.observation, _count_by_bucket(key.buckets))
            self._last = counted, seen
            seen = seen.drop(_BUCKET)
        else:
            self._count(batch, key, salts)
            seen = batch
        if not self._has_warned:
            self._has_warned = salts.warn_if_missing(self.plan)
        plan = salts.fit(self.plan)
        destination = bin_of(batch.sparkSession, plan, key.bucket(), salts.column())
        return to_partitions(seen, plan.bins, destination)

    def _count(self, batch: DataFrame, key: Key, salts: Salts) -> None:
        """Count the batch in a separate pass, and warn if equal rows cannot be split."""
        counts = bucket_counts(batch, key, sample=self._sample)
        if counts.any():
            plan = salts.fit(self._planner.update(counts))
            self._has_counted = True
            warn_of_equal_rows(batch, plan, key.bucket(), salts)

    def _learn(self) -> None:
        """Update the plan if counts of the last batch have arrived."""
        last, self._last = self._last, None
        counts = None if last is None else _counts_of(*last, self._planner.buckets)
        if counts is not None and counts.any():
            self._planner.update(counts)

    def __getstate__(self) -> dict[str, Any]:
        # A pending observation belongs to this process and its session.
        return self.__dict__ | {"_last": None}


def _count_by_bucket(buckets: int) -> Column:
    """Return an aggregate that counts the rows of each bucket: a count-min sketch.

    The sketch has one row with one counter for each bucket, and its hash is the identity. Its
    counts are therefore exact. It costs about a third of `approx_top_k`, the alternative.
    """
    error = F.lit(2 / (buckets - 0.5))  # Spark makes ceil(2 / error) counters
    return F.count_min_sketch(F.col(_BUCKET), error, F.lit(0.4), F.lit(_SEED)).alias("counts")


def _counts_of(counted: Observed, frame: DataFrame, buckets: int) -> NDArray[np.float64] | None:
    """Return the counts of the first action on the frame; None if they do not arrive in time."""
    seen = counted.within(_PATIENCE) or counted.close(frame)
    if seen is None:
        return None
    return _decoded(bytes(seen["counts"]), buckets)


def _decoded(sketch: bytes, buckets: int) -> NDArray[np.float64]:
    """Return the counters of a sketch with one row."""
    version, _, depth, width, factor = _HEADER.unpack_from(sketch)
    if (version, depth, width, factor) != (1, 1, buckets, 1):
        raise RuntimeError(
            "this version of Spark writes count-min sketches in a format that steelyard does not "
            "know; use sy.repartition, which counts each batch"
        )
    return np.frombuffer(sketch, ">i8", offset=_HEADER.size).astype(np.float64)
