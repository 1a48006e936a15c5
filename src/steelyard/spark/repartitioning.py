"""Balanced partitions: count, plan, and send every row where the plan says.

A frame and its key enter; the same rows leave, in partitions of equal weight.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.spark.columns import (
    HIDDEN,
    Key,
    named,
    require_frame,
    require_key,
    require_weight,
)
from steelyard.spark.native_routing import bin_of
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.routing import (
    planner_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import ENOUGH, Salts
from steelyard.validation import require_whole

_LOOK = 20_000
"""Rows of split buckets that are looked at to see whether their salts differ."""


def plan(
    frame: DataFrame,
    *key: str,
    workers: int,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    routing: Balance = Balance(),  # noqa: B008  # frozen
) -> RoutingPlan:
    """Count the messages of each bucket of keys, in one pass over the key columns, and plan.

    No worker gets more than `(1 + epsilon)` times its share. The plan describes itself in a
    notebook, and `repartition`, `group_by` and `join` accept it as `routing`, which saves them the
    counting pass.

    Args:
        frame: The rows to plan for; it must not be a stream.
        key: The columns of the key.
        workers: The number of workers, or of partitions.
        capacities: Relative speeds of the workers, if they are known; equal by default.
        weight: A column of numbers, at least 0: how much each row counts; 1 by default.
        routing: The settings of the balancing, such as `Balance(epsilon=0.1, sample=0.1)`.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> planned = plan(rows, "page", workers=8)
    >>> len(planned.splits), bool(planned.shares.max() * 8 < 1.011)
    (1, True)
    """
    require_whole("workers", workers, least=1)
    require_frame("frame", frame)
    require_key(frame, "key", key)
    require_routing(routing, ["balance"])
    _refuse_streams(
        frame, "plan", "plan the files that it reads, or use sy.group_stream(stream, ...)"
    )
    planner = planner_of(routing, workers, capacities)
    buckets = Key(key, routing.buckets)
    counts = bucket_counts(frame, buckets, weight=weight, sample=routing.sample)
    if not counts.any():
        raise ValueError("there is nothing to plan for: the frame is empty, or all weights are 0")
    return planner.update(counts)


def repartition(
    frame: DataFrame,
    workers: int,
    *key: str,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Balance | RoutingPlan = Balance(),  # noqa: B008  # frozen
) -> DataFrame:
    """Like `frame.repartition(workers, *key)`, without the hot partition.

    A key stays in one partition unless it has too many rows for one; then it is in as few as hold
    it. Which of them a row goes to depends on its content, so that a task that is run again sends
    it to the same place; rows that are equal in all columns stay together. `salt` names the
    columns to tell rows of a key apart by, if a few are enough: an id, or Kafka's partition and
    offset.

    By default those columns tell them apart whose values are sure to be the same when a task is run
    again: not `rand()` behind a shuffle, nor a sum of fractions, nor what `dropDuplicates` left
    besides its own columns. If there are none, hot keys stay whole, and a warning says so. A `salt`
    of such columns is refused; where Spark does not show how a column is made, you are believed.

    Args:
        frame: The rows to distribute; a stream only with a `RoutingPlan`.
        workers: The number of partitions.
        key: The columns of the key.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A column of numbers, at least 0: how much each row counts; 1 by default.
        salt: The columns that tell rows of one key apart.
        routing: A `RoutingPlan` of `plan`, which saves the counting pass, or the settings of the
            balancing.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> balanced = repartition(rows, 4, "page")
    >>> sizes = balanced.groupBy(F.spark_partition_id()).count()
    >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
    [1.0, 1.0, 1.0, 1.0]
    """
    require_whole("workers", workers, least=1)
    require_frame("frame", frame)
    require_key(frame, "key", key)
    require_routing(routing, ["balance", "plan"])
    require_not_decided(routing, capacities=capacities, weight=weight)
    salts = Salts.of(frame, salt, key, repeated(frame))
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers)
        planned = fitted(routing, salts)
    else:
        others = "use sy.group_stream(stream, ...), or sy.Balancer in foreachBatch"
        _refuse_streams(frame, "repartition without a plan", f"give a plan, {others}")
        planner = planner_of(routing, workers, capacities)
        planned = counted_plan(frame, key, planner, salts, weight=weight, sample=routing.sample)
    # Not as a column of its own, which would travel with every row.
    destination = bin_of(planned, Key(key, planned.buckets).bucket(), salts.column())
    return frame.repartitionById(workers, destination)


def counted_plan(
    frame: DataFrame,
    names: tuple[str, ...],
    planner: Planner,
    salts: Salts,
    *,
    weight: str | None = None,
    sample: float | None = None,
) -> RoutingPlan:
    """A plan for the rows of a frame, which may have none; warns if they cannot be told apart."""
    key = Key(names, planner.buckets)
    made = fitted(planner.update(bucket_counts(frame, key, weight=weight, sample=sample)), salts)
    warn_of_equal_rows(frame, made, key.bucket(), salts)
    return made


def fitted(plan: RoutingPlan, salts: Salts) -> RoutingPlan:
    """The plan, with hot keys whole if nothing tells their rows apart; warns if so."""
    salts.warn_if_missing(plan, stacklevel=4)
    return salts.fit(plan)


def bucket_counts(
    frame: DataFrame, key: Key, *, weight: str | None = None, sample: float | None = None
) -> NDArray[np.float64]:
    """Rows, or their weights, by bucket: one pass over the key columns."""
    require_weight(frame, weight)
    if sample is not None:
        frame = frame.sample(fraction=sample, seed=0)
    bucket, number = f"{HIDDEN}bucket", f"{HIDDEN}number"
    found = frame.groupBy(key.bucket().alias(bucket)).agg(amount_of(weight).alias(number))
    counted = found.toArrow()
    counts = np.zeros(key.buckets)
    counts[counted[bucket].to_numpy()] = counted[number].fill_null(0.0).to_numpy()
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError(f"weight: column {weight!r} must hold numbers of at least 0")
    return counts


def amount_of(weight: str | None) -> Column:
    """How much some rows count for: their number, or the sum of their weights."""
    if weight is None:
        return F.count(F.lit(1)).cast("double")
    return F.sum(named(weight).cast("double"))  # a sum of longs or decimals may not fit


def _refuse_streams(frame: DataFrame, what: str, instead: str) -> None:
    if frame.isStreaming:
        raise ValueError(f"{what} must count rows first, which a stream does not allow; {instead}")


def warn_of_equal_rows(frame: DataFrame, plan: RoutingPlan, bucket: Column, salts: Salts) -> None:
    """Look at some rows of split buckets: those with equal salts cannot be parted."""
    split = sorted(plan.splits)
    if not split:
        return
    looked = frame.select(bucket.alias("bucket"), salts.column().alias("salt"))
    looked = looked.where(F.col("bucket").isin(split)).limit(_LOOK)
    rows = looked.toArrow().to_pandas()
    for number, own in rows.groupby("bucket"):
        most_alike = own["salt"].value_counts(normalize=True).iloc[0]
        widest = max(cell.weight for cell in plan.cells(int(number)))
        if len(own) >= ENOUGH and most_alike > widest:
            warnings.warn(
                f"{most_alike:.0%} of the rows of a hot key are equal in {', '.join(salts.names)}, "
                "and equal rows stay in one partition; name columns that differ with salt=",
                stacklevel=4,
            )
            return
