"""Balance the micro-batches of a stream, each by what the ones before it have shown.

The frame of a micro-batch enters; the same rows leave, in partitions of equal weight. While they
flow, Spark counts them by bucket, and the next batch is planned from these counts.
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
    require_key,
    require_names,
)
from steelyard.spark.native_routing import bin_of
from steelyard.spark.observed_counts import Observed
from steelyard.spark.repartitioning import bucket_counts, warn_of_equal_rows
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.routing import planner_of, require_routing
from steelyard.spark.salts import Salts
from steelyard.validation import require_whole

_BUCKET = f"{HIDDEN}seen"

_PATIENCE = 1.0
"""Seconds to wait for the counts of the last batch: they arrive soon after its first action."""

_SEED = 1_003_792_688
"""From this seed Spark's count-min sketch draws the factor 1, so a bucket's cell is its number."""

_HEADER = struct.Struct(">iqiiq")
"""How a sketch of one row begins: version, rows counted, depth, width, factor of its hash."""


class Balancer:
    """Repartitions every micro-batch by a plan that follows the stream; made for `foreachBatch`.

    Call `repartition` once for each batch and write what it returns. The first batch that has rows
    is counted in a pass of its own, as nothing is known yet. From then on there is no extra pass:
    Spark counts the rows while the first action on a batch moves them, and the next batch is
    planned from these counts and the earlier ones, which fade by `Balance(decay=...)`. With the
    default of 0.2 a key that becomes hot is split one batch later, nearly as widely as it needs.
    With 0, which suits large batches, it is split as widely as it needs at once; larger values even
    out the accidents of small batches.

    A batch without an action teaches nothing, and makes the next one wait for a second; one whose
    action failed teaches what Spark had counted until then. Counts are advice: if an executor is
    lost they may come out too high, and the plan less even, but every row still arrives once.

    Use one balancer for one query. On Spark Connect `foreachBatch` works on a copy, in another
    process; `plan` is then the copy's. There the steps of a micro-batch cannot be seen: name
    `salt`, or hot keys stay whole.

    Args:
        key: The columns of the key.
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        salt: The columns that tell rows of one key apart, as in `steelyard.repartition`.
        routing: The settings of the balancing.

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
        *key: str,
        workers: int,
        capacities: Sequence[float] | None = None,
        salt: Sequence[str] | None = None,
        routing: Balance = Balance(),  # noqa: B008  # frozen
    ) -> None:
        require_names("key", key)
        if salt is not None:
            require_names("salt", salt)
        require_whole("workers", workers, least=1)
        require_routing(routing, ["balance"])
        self._planner = planner_of(routing, workers, capacities)
        self._key = Key(key, self._planner.buckets)
        self._salt = None if salt is None else tuple(salt)
        self._sample = routing.sample
        self._has_counted = self._has_warned = False
        self._last: tuple[Observed, DataFrame] | None = None

    @property
    def plan(self) -> RoutingPlan:
        """The plan of the last batch; before the first, every key in one place by its hash."""
        return self._planner.plan

    def repartition(self, batch: DataFrame) -> DataFrame:
        """The rows of a batch in balanced partitions, with the same columns.

        >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
        >>> balanced = Balancer("page", workers=4).repartition(rows)
        >>> sizes = balanced.groupBy(F.spark_partition_id()).count()
        >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
        [1.0, 1.0, 1.0, 1.0]
        """
        require_frame("batch", batch)
        if batch.isStreaming:
            raise ValueError(
                "a balancer takes the batches of a stream, not the stream: call repartition in the "
                "function that you give to foreachBatch"
            )
        require_key(batch, "key", self._key.names)
        salts = Salts.of(batch, self._salt, self._key.names, repeated(batch))
        if self._has_counted:
            self._learn()
            counted = Observed()
            # A column before the aggregate: Spark compiles the hash here, and would not in there.
            seen = batch.withColumn(_BUCKET, self._key.bucket())
            seen = seen.observe(counted.observation, _count_by_bucket(self._key.buckets))
            self._last = counted, seen
            seen = seen.drop(_BUCKET)
        else:
            self._count(batch, salts)
            seen = batch
        if not self._has_warned:
            self._has_warned = salts.warn_if_missing(self.plan, stacklevel=2)
        plan = salts.fit(self.plan)
        destination = bin_of(plan, self._key.bucket(), salts.column())
        return seen.repartitionById(plan.bins, destination)

    def _count(self, batch: DataFrame, salts: Salts) -> None:
        """Count the batch in a pass of its own, and look whether its rows can be told apart."""
        counts = bucket_counts(batch, self._key, sample=self._sample)
        if counts.any():
            plan = salts.fit(self._planner.update(counts))
            self._has_counted = True
            warn_of_equal_rows(batch, plan, self._key.bucket(), salts)

    def _learn(self) -> None:
        """Plan again if the counts of the last batch have arrived and there are any."""
        last, self._last = self._last, None
        counts = None if last is None else _counts_of(*last, self._key)
        if counts is not None and counts.any():
            self._planner.update(counts)

    def __getstate__(self) -> dict[str, Any]:
        # What is being observed belongs to this process and its session.
        return self.__dict__ | {"_last": None}


def _count_by_bucket(buckets: int) -> Column:
    """The rows of each bucket as an aggregate: a count-min sketch with one cell for each.

    It has a single row as long as the buckets and the identity as its hash, so that its counts are
    exact. It costs about a third of `approx_top_k`, the other aggregate that could do it.
    """
    error = F.lit(2 / (buckets - 0.5))  # Spark makes ceil(2 / error) cells
    return F.count_min_sketch(F.col(_BUCKET), error, F.lit(0.4), F.lit(_SEED)).alias("counts")


def _counts_of(counted: Observed, frame: DataFrame, key: Key) -> NDArray[np.float64] | None:
    """The counts that an action on the frame has left, if they come in time."""
    seen = counted.within(_PATIENCE) or counted.close(frame)
    if seen is None:
        return None
    return _decoded(bytes(seen["counts"]), key.buckets)


def _decoded(sketch: bytes, buckets: int) -> NDArray[np.float64]:
    """The table of a sketch with one row."""
    version, _, depth, width, factor = _HEADER.unpack_from(sketch)
    if (version, depth, width, factor) != (1, 1, buckets, 1):
        raise RuntimeError(
            "this version of Spark writes count-min sketches in another way than the versions that "
            "steelyard knows; use sy.repartition, which counts each batch"
        )
    return np.frombuffer(sketch, ">i8", offset=_HEADER.size).astype(np.float64)
