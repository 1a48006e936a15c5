"""Balance the partitions of a frame: count its rows, plan, and route every row by the plan.

A frame and its key enter; the same rows leave, in partitions of equal weight.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.plans.description import KeyFacts
from steelyard.reported_keys import ReportedKeys
from steelyard.spark.caller_warnings import warn_caller
from steelyard.spark.columns import (
    HIDDEN,
    Key,
    amount_of,
    named,
    require_frame,
    require_weight,
    shown,
)
from steelyard.spark.key_names import names_of_split_buckets
from steelyard.spark.native_routing import bin_of
from steelyard.spark.resolved_columns import ResolvedColumns
from steelyard.spark.routing import (
    planner_of,
    require_key_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import ENOUGH, Salts
from steelyard.spark.versions.arrow import to_arrow
from steelyard.spark.versions.partitions import to_partitions
from steelyard.validation import require_whole

_CHECKED_ROWS = 20_000
"""Rows of split buckets that are read to check whether their salts differ."""


def plan(
    frame: DataFrame,
    *key: str | Column,
    workers: int,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    routing: Balance = Balance(),  # noqa: B008  # frozen
) -> RoutingPlan:
    """Count the messages of each bucket, in one pass over the key columns, and make a plan.

    No worker gets more than `(1 + epsilon)` times its share. `repartition`, `group_by` and `join`
    accept the plan as `routing` and then need no counting pass.

    A notebook shows the loads of the workers, as `describe()` does in text: under the plan, and in
    the partitions of Spark's own `repartition(workers, *key)`. Where the plan splits a bucket, a
    second job samples its rows and finds the most frequent keys.

    Args:
        frame: The rows to plan for; it must not be a stream.
        key: The columns of the key: names, fields such as "user.id", or deterministic expressions
            such as `F.lower("page")`.
        workers: The number of workers, or of partitions.
        capacities: Relative speeds of the workers, if they are known; equal by default.
        weight: A numeric column, at least 0, with the weight of each row; 1 by default.
        routing: The settings of the balancing, such as `Balance(epsilon=0.1, sample=0.1)`.

    Returns:
        The plan. Calls with another key refuse it.

    Raises:
        TypeError: `frame` is not a Spark DataFrame, or an argument has a wrong type.
        ValueError: `frame` is a stream or has no rows, a column is missing or unsuitable, or a
            setting is out of range.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> planned = plan(rows, "page", workers=8)
    >>> planned.describe()
    8 workers, 8,192 buckets of keys
    largest worker   1.010 of its fair share (4.518 by key grouping)
    copies of a key  1.001 on average (3,774 copies of 3,770 buckets)
    hot              1 bucket is split
      hot   50.01 % of the stream, on 5 workers
    """
    require_whole("workers", workers, least=1)
    require_frame("frame", frame)
    found = ResolvedColumns.of(frame, key, weight=weight)
    require_routing(routing, ["balance"])
    _refuse_streams(
        frame, "plan", "plan the files that it reads, or use sy.group_stream(stream, ...)"
    )
    planner = planner_of(routing, workers, capacities)
    buckets = found.hashed_key(routing.buckets)
    rows, weighed, sample = found.wide, found.weight, routing.sample
    counts, by_partition = counts_by_hash(rows, buckets, workers, weight=weighed, sample=sample)
    if not counts.any():
        raise ValueError("there are no rows to plan for: the frame is empty, or all weights are 0")
    made = planner.update(counts)
    names = names_of_split_buckets(rows, made, buckets, weight=weighed, sample=sample)
    reported = ReportedKeys.of(routing.report_keys)
    facts = KeyFacts(by_partition, names).named_by(reported.shown_columns)
    return replace(made, key=found.texts, facts=facts)


def repartition(
    frame: DataFrame,
    workers: int,
    *key: str | Column,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Balance | RoutingPlan = Balance(),  # noqa: B008  # frozen
) -> DataFrame:
    """Repartition like `frame.repartition(workers, *key)`, without the hot partition.

    A key stays in one partition unless it has too many rows for one; then it is split over as few
    partitions as possible. The content of a row decides to which of them it goes, so a task retry
    sends it to the same partition. Rows that are equal in all columns stay together. `salt` names
    the columns that decide, if a few are enough: an id, or Kafka's partition and offset.

    By default, `salt` is every column whose values are the same in each task retry. Columns that
    may change are left out: `rand()` after a shuffle, a sum of floating-point numbers, or columns
    that `dropDuplicates` does not compare. If no column is left, hot keys stay whole, and a warning
    says so. A `salt` with columns that are known to change is refused. Where Spark does not show
    how a column is computed, the `salt` of the user is accepted.

    Args:
        frame: The rows to distribute; a stream only with a `RoutingPlan`.
        workers: The number of partitions.
        key: The columns of the key, as in `plan`.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A numeric column, at least 0, with the weight of each row; 1 by default.
        salt: The columns that distinguish rows of one key.
        routing: A `RoutingPlan` made by `plan`, which avoids the counting pass, or the settings of
            the balancing.

    Returns:
        The same rows in `workers` partitions.

    Raises:
        TypeError: `frame` is not a Spark DataFrame, or an argument has a wrong type.
        ValueError: `frame` is a stream and `routing` is not a plan, a column is missing or
            unsuitable, or a setting is out of range.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> balanced = repartition(rows, 4, "page")
    >>> sizes = balanced.groupBy(F.spark_partition_id()).count()
    >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
    [1.0, 1.0, 1.0, 1.0]
    """
    require_whole("workers", workers, least=1)
    require_frame("frame", frame)
    found = ResolvedColumns.of(frame, key, weight=weight, salt=salt)
    require_routing(routing, ["balance", "plan"])
    require_not_decided(routing, capacities=capacities, weight=weight)
    salts = found.salts()
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers)
        require_key_of(routing, found.texts)
        planned = fitted(routing, salts)
    else:
        others = "use sy.group_stream(stream, ...), or sy.Balancer in foreachBatch"
        _refuse_streams(frame, "repartition without a plan", f"pass a plan, {others}")
        planner = planner_of(routing, workers, capacities)
        planned = counted_plan(
            found.wide, found.key, planner, salts, weight=found.weight, sample=routing.sample
        )
    # An expression and not a column, because a column would be shuffled with every row.
    bucket = found.computed_key(planned.buckets).bucket()
    destination = bin_of(frame.sparkSession, planned, bucket, salts.column())
    return to_partitions(frame, workers, destination)


def counted_plan(
    frame: DataFrame,
    names: tuple[str, ...],
    planner: Planner,
    salts: Salts,
    *,
    weight: str | None = None,
    sample: float | None = None,
) -> RoutingPlan:
    """Count the rows of a frame and plan for them; warn if equal rows of a hot key stay together.

    Args:
        frame: The rows; there may be none.
        names: The columns of the key.
        planner: Makes the plan from the counts.
        salts: The columns that distinguish rows of one key.
        weight: The column with the weight of each row, or None.
        sample: The fraction of the rows to count, or None for all.

    Returns:
        The plan; without salt columns it splits no key.

    Raises:
        ValueError: A weight is negative or not finite.
    """
    key = Key(names, planner.buckets)
    made = fitted(planner.update(bucket_counts(frame, key, weight=weight, sample=sample)), salts)
    warn_of_equal_rows(frame, made, key.bucket(), salts)
    return made


def fitted(plan: RoutingPlan, salts: Salts) -> RoutingPlan:
    """Return the plan; without salt columns, with hot keys whole and with a warning."""
    salts.warn_if_missing(plan)
    return salts.fit(plan)


def bucket_counts(
    frame: DataFrame, key: Key, *, weight: str | None = None, sample: float | None = None
) -> NDArray[np.float64]:
    """Count the rows of each bucket, or add up their weights, in one pass over the key columns.

    Args:
        frame: The rows.
        key: The key columns and the number of buckets.
        weight: The column with the weight of each row, or None.
        sample: The fraction of the rows to count, or None for all.

    Returns:
        One number for each bucket.

    Raises:
        ValueError: The weight is not a numeric column, or a weight is negative or not finite.
    """
    return _counts(frame, key.bucket(), key.buckets, weight, sample)


def counts_by_hash(
    frame: DataFrame, key: Key, partitions: int, *, weight: str | None, sample: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count like `bucket_counts`, and in the same pass by the partition that Spark gives a key.

    Args:
        frame: The rows.
        key: The key columns and the number of buckets.
        partitions: The number of partitions of Spark's own `repartition(partitions, *key)`.
        weight: The column with the weight of each row, or None.
        sample: The fraction of the rows to count, or None for all.

    Returns:
        One number for each bucket, and one for each partition.

    Raises:
        ValueError: The weight is not a numeric column, or a weight is negative or not finite.
    """
    partition = F.pmod(F.hash(*map(named, key.names)), F.lit(partitions))
    # Every row counts twice. This is faster than one count for each pair of bucket and partition,
    # of which there may be millions.
    both = F.explode(F.array(key.bucket(), partition + key.buckets))
    counts = _counts(frame, both, key.buckets + partitions, weight, sample)
    return counts[: key.buckets], counts[key.buckets :]


def _counts(
    frame: DataFrame, group: Column, groups: int, weight: str | None, sample: float | None
) -> NDArray[np.float64]:
    """Count the rows of each of the groups 0, 1, 2, ..., or add up their weights."""
    require_weight(frame, weight)
    if sample is not None:
        frame = frame.sample(fraction=sample, seed=0)
    number, amount = f"{HIDDEN}number", f"{HIDDEN}amount"
    weights = [] if weight is None else [named(weight)]
    grouped = frame.select(group.alias(number), *weights).groupBy(number)
    counted = to_arrow(grouped.agg(amount_of(weight).alias(amount)))
    counts = np.zeros(groups)
    counts[counted[number].to_numpy()] = counted[amount].fill_null(0.0).to_numpy()
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError(f"weight: column {shown(weight or '')!r} must hold numbers of at least 0")
    return counts


def _refuse_streams(frame: DataFrame, what: str, instead: str) -> None:
    if frame.isStreaming:
        raise ValueError(f"{what} counts the rows first, and a stream has no end; {instead}")


def warn_of_equal_rows(frame: DataFrame, plan: RoutingPlan, bucket: Column, salts: Salts) -> None:
    """Read some rows of split buckets, and warn if rows with equal salts exceed a cell.

    Args:
        frame: The rows.
        plan: The plan that splits buckets.
        bucket: The bucket of a row's key.
        salts: The columns that distinguish rows of one key.
    """
    share = equal_rows(frame, plan, bucket, salts)
    if share is not None:
        compared = ", ".join(map(shown, salts.names))
        warn_caller(
            f"{share:.0%} of the rows of a hot key are equal in {compared}, "
            "and equal rows stay in one partition; name columns that differ with salt="
        )


def equal_rows(frame: DataFrame, plan: RoutingPlan, bucket: Column, salts: Salts) -> float | None:
    """Return the share of rows with equal salts in a split bucket, if it exceeds a cell.

    Args:
        frame: The rows, of which only some are read.
        plan: The plan that splits buckets.
        bucket: The bucket of a row's key.
        salts: The columns that distinguish rows of one key.

    Returns:
        The share in the first such bucket; None if there is none.
    """
    split = sorted(plan.splits)
    if not split:
        return None
    checked = frame.select(bucket.alias("bucket"), salts.column().alias("salt"))
    checked = checked.where(F.col("bucket").isin(split)).limit(_CHECKED_ROWS)
    rows = to_arrow(checked).to_pandas()
    for number, own in rows.groupby("bucket"):
        largest = float(own["salt"].value_counts(normalize=True).iloc[0])
        widest = max(cell.weight for cell in plan.cells(int(number)))
        if len(own) >= ENOUGH and largest > widest:
            return largest
    return None
