"""Balance the partitions of a frame inside its query: the plan is made when the query runs.

A key enters; a function from frames to frames leaves. The query counts the rows by bucket, plans
in one task, and routes every row by the plan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    require_frame,
    require_names,
    salt_of,
)
from steelyard.spark.executor_packages import ALWAYS
from steelyard.spark.hashed_partitions import labels
from steelyard.spark.native_routing import BIN, bin_in
from steelyard.spark.resolved_columns import ResolvedColumns, require_key_parts
from steelyard.spark.retries.requests import repeated_by_request, streams_by_request
from steelyard.spark.routing import planner_of, require_routing
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
    definition is not in the request. There, names and types are checked when the query runs, and a
    name with a dot is a field; a column with a dot in its name needs backticks.

    Args:
        key: The columns of the key, as in `steelyard.plan`.
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
    require_key_parts("key", key)
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
    read = _by_request if is_of_connect(frame) else _by_plan
    columns = read(frame, key, weight, salt)
    bucket = Key(columns.key, planning.buckets).bucket()
    plan = _planned(columns.wide, bucket, planning, columns.weight, sample).scalar()
    # The plan is a column of its own, so that the query contains its subquery only once.
    routed = columns.wide.withColumn(_PLAN, plan).withColumn(_ENTRY, F.get(_PLAN, bucket))
    label = bin_in(F.col(_PLAN), F.col(_ENTRY), columns.by, shift=32, steps=planning.steps)
    routed = _without(routed.withColumn(BIN, label), _PLAN, _ENTRY, *columns.temporary)
    return _without(routed.repartition(planning.labels.size, F.col(BIN)), BIN)


@dataclass(frozen=True)
class _Columns:
    """The columns that the arguments of a call name.

    Args:
        wide: The frame, with temporary columns for what is computed.
        key: The columns of the key.
        weight: The column with the weight of each row, or None.
        by: The salt of a row.
        temporary: The temporary columns.
    """

    wide: DataFrame
    key: tuple[str, ...]
    weight: str | None
    by: Column
    temporary: tuple[str, ...]


def _by_plan(
    frame: DataFrame, key: Sequence[str | Column], weight: str | None, salt: Sequence[str] | None
) -> _Columns:
    """Find the columns in the analyzed plan; refuse those that are known to be unsuitable."""
    require_version(frame.sparkSession, SUBQUERIES, "sy.balanced", "; use sy.repartition")
    _refuse_stream(is_stream=frame.isStreaming)
    found = ResolvedColumns.of(frame, key, weight=weight, salt=salt)
    salts = found.salts()
    if not salts.names:
        _require_salt(f"no column besides the key is known to be ({salts.missing})")
    return _Columns(found.wide, found.key, found.weight, salts.column(), tuple(found.computed))


def _by_request(
    frame: DataFrame, key: Sequence[str | Column], weight: str | None, salt: Sequence[str] | None
) -> _Columns:
    """Name the columns as the user does, because only the server knows them.

    As everywhere in Spark, a name with a dot is a field.
    """
    _refuse_stream(is_stream=streams_by_request(frame))
    computed: dict[str, Column] = {}

    def own(written: str | Column, temporary: str) -> str:
        if isinstance(written, str) and not {".", "`"} & set(written):
            return written
        name = f"{HIDDEN}{temporary}"
        computed[name] = F.col(written) if isinstance(written, str) else written
        return name

    names = tuple(own(part, f"key_{i}") for i, part in enumerate(key))
    weighed = None if weight is None else own(weight, "weight")
    by = F.expr(f"xxhash64({_star_without(_PLAN, _ENTRY)})")
    if salt is not None:
        by = salt_of([own(name, f"salt_{i}") for i, name in enumerate(salt)])
    elif not repeated_by_request(frame):
        _require_salt(
            "through Spark Connect this is known only for rows that are read directly from data "
            "sources"
        )
    wide = frame.withColumns(computed) if computed else frame
    return _Columns(wide, names, weighed, by, tuple(computed))


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
    quoted = ("`" + name.replace("`", "``") + "`" for name in names)
    return f"* EXCEPT ({', '.join(quoted)})"


def _refuse_stream(*, is_stream: bool) -> None:
    if is_stream:
        raise ValueError(
            "balanced counts the rows of each query, and a stream has no end; use "
            "sy.group_stream(stream, ...), or sy.Balancer in foreachBatch"
        )


def _require_salt(why: str) -> None:
    raise ValueError(
        f"salt: name columns that are deterministic across task retries, such as an id; {why}"
    )
