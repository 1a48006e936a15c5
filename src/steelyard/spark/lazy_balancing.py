"""Balance the partitions of a frame inside its query: the plan is made when the query runs.

A key enters; a function from frames to frames leaves. The query counts the rows by bucket, plans
in one task, and routes every row by the plan.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType

from steelyard.executor.plan_from_counts import PlanFromCounts
from steelyard.plans import Balance
from steelyard.spark.columns import (
    HIDDEN,
    Key,
    amount_of,
    require_distinct_names,
    require_frame,
    require_hashes,
    require_key,
    require_names,
    require_weight,
    salt_of,
)
from steelyard.spark.executor_packages import ALWAYS
from steelyard.spark.hashed_partitions import labels
from steelyard.spark.native_routing import BIN, bin_in
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.retries.requests import repeated_by_request, streams_by_request
from steelyard.spark.routing import planner_of, require_routing
from steelyard.spark.salts import Salts
from steelyard.spark.shipping import OnExecutors, by_value
from steelyard.spark.versions.supported import SUBQUERIES, is_of_connect, require_version
from steelyard.validation import require_whole

_PLAN = f"{HIDDEN}plan"
_ENTRY = f"{HIDDEN}entry"


def balanced(
    *key: str | Column,
    workers: int,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Balance = Balance(),  # noqa: B008  # frozen
) -> Callable[[DataFrame], DataFrame]:
    """Repartition like `steelyard.repartition`, but count the rows when the query runs.

    Pass the result to `DataFrame.transform`. Defining the query runs no job, and on Spark Connect
    it sends no request. So the call works in a function of Spark Declarative Pipelines, and a view
    of the result counts again each time it is read.

    Each query computes its plan once, on the driver. A task retry uses the same plan, even if it
    reads other rows. The plan then may balance less well, but no row is lost or duplicated.

    `salt` has the same meaning as in `steelyard.repartition`, with two differences. If no column is
    known to be deterministic across task retries, `salt` is required. On Spark Connect, only frames
    that are read from files, ranges or local data need no `salt`: a table may be a view, whose
    definition is not in the request. There, types are checked when the query runs.

    Args:
        key: The columns of the key: names, or expressions.
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A numeric column, at least 0, with the weight of each row; 1 by default.
        salt: The columns that distinguish rows of one key.
        routing: The settings of the balancing.

    Returns:
        A function that returns the rows of a DataFrame in `workers` partitions. It raises a
        ValueError if the frame is a stream, if `salt` is required, or if a column is known to be
        missing or unsuitable.

    Raises:
        TypeError: An argument has a wrong type.
        ValueError: A setting is out of range.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> even = rows.transform(balanced("page", workers=4, salt=["id"]))
    >>> sizes = even.groupBy(F.spark_partition_id()).count()
    >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
    [1.0, 1.0, 1.0, 1.0]
    """
    require_whole("workers", workers, least=1)
    names = [part for part in key if not isinstance(part, Column)]
    if names or not key:
        require_names("key", names)
    for argument, given in (("weight", weight and [weight]), ("salt", salt)):
        if given is not None:
            require_names(argument, given)
    require_routing(routing, ["balance"])
    planner = planner_of(routing, workers, capacities)
    planning = PlanFromCounts(
        planner.epsilon, planner.buckets, planner.capacities, np.array(labels(workers))
    )
    return partial(
        _balanced, key=key, planning=planning, weight=weight, salt=salt, sample=routing.sample
    )


def _balanced(
    frame: DataFrame,
    *,
    key: Sequence[str | Column],
    planning: PlanFromCounts,
    weight: str | None,
    salt: Sequence[str] | None,
    sample: float | None,
) -> DataFrame:
    """Return the rows of a frame in balanced partitions."""
    require_frame("frame", frame)
    computed = {f"{HIDDEN}key_{i}": part for i, part in enumerate(key) if isinstance(part, Column)}
    names = tuple(f"{HIDDEN}key_{i}" if isinstance(p, Column) else p for i, p in enumerate(key))
    keyed = frame.withColumns(computed) if computed else frame
    if is_of_connect(frame):
        by = _salt_by_request(frame, salt)
    else:
        _require_known(frame, keyed, names, weight)
        by = _salt_by_plan(keyed, names, salt)
    bucket = Key(names, planning.buckets).bucket()
    plan = _planned(keyed, bucket, planning, weight, sample).scalar()
    # The plan is a column of its own, so that the query contains its subquery only once.
    routed = keyed.withColumn(_PLAN, plan).withColumn(_ENTRY, F.get(_PLAN, bucket))
    label = bin_in(F.col(_PLAN), F.col(_ENTRY), by, shift=32, steps=planning.steps)
    routed = _without(routed.withColumn(BIN, label), _PLAN, _ENTRY, *computed)
    return _without(routed.repartition(planning.labels.size, F.col(BIN)), BIN)


def _planned(
    frame: DataFrame,
    bucket: Column,
    planning: PlanFromCounts,
    weight: str | None,
    sample: float | None,
) -> DataFrame:
    """Return one row with the entries of the table that leads to the labels of the partitions."""
    if sample is not None:
        frame = frame.sample(fraction=sample, seed=0)
    counted = frame.groupBy(bucket.alias("bucket")).agg(amount_of(weight).alias("number"))
    listed = counted.agg(F.collect_list(F.struct("bucket", "number")).alias("counted"))
    fetch = by_value(planning)

    def plan(counted):  # type: ignore[no-untyped-def]  # Spark would read types of another kind
        return fetch()(counted)

    made = F.udf(OnExecutors(plan, ALWAYS), ArrayType(LongType(), False), useArrow=False)
    return listed.select(made("counted").alias(_PLAN))


def _without(frame: DataFrame, *names: str) -> DataFrame:
    """Drop columns; Spark Connect would analyze the frame for `DataFrame.drop`."""
    return frame.select(F.expr(_star_without(*names)))


def _star_without(*names: str) -> str:
    return f"* EXCEPT ({', '.join(f'`{name}`' for name in names)})"


def _require_known(
    frame: DataFrame, keyed: DataFrame, names: Sequence[str], weight: str | None
) -> None:
    """Refuse frames that are known to be unsuitable; on classic Spark this needs no job."""
    require_version(frame.sparkSession, SUBQUERIES, "sy.balanced", "; use sy.repartition")
    _refuse_stream(is_stream=frame.isStreaming)
    require_distinct_names(frame)
    own = [name for name in names if not name.startswith(HIDDEN)]
    if own:
        require_key(frame, "key", own)
    require_hashes(keyed, "key", names)
    require_weight(frame, weight)


def _refuse_stream(*, is_stream: bool) -> None:
    if is_stream:
        raise ValueError(
            "balanced counts the rows of each query, and a stream has no end; use "
            "sy.group_stream(stream, ...), or sy.Balancer in foreachBatch"
        )


def _salt_by_plan(frame: DataFrame, key: Sequence[str], salt: Sequence[str] | None) -> Column:
    """Return the salt of a row, from columns that the analyzed plan shows to be deterministic."""
    salts = Salts.of(frame, salt, key, repeated(frame))
    if not salts.names:
        _require_salt(f"no column besides the key is known to be ({salts.missing})")
    return salts.column()


def _salt_by_request(frame: DataFrame, salt: Sequence[str] | None) -> Column:
    """Return the salt of a row, from columns that the request shows to be deterministic."""
    _refuse_stream(is_stream=streams_by_request(frame))
    if salt is not None:
        return salt_of(salt)
    if not repeated_by_request(frame):
        _require_salt(
            "through Spark Connect this is known only for rows that are read directly from data "
            "sources"
        )
    return F.expr(f"xxhash64({_star_without(_PLAN, _ENTRY)})")


def _require_salt(why: str) -> None:
    raise ValueError(
        f"salt: name columns that are deterministic across task retries, such as an id; {why}"
    )
