"""A balanced join: rows of a hot key are shared out, and what they join with follows them.

Two frames and the columns they share enter; the rows of Spark's own join leave, in partitions of
equal weight. Spark shuffles each frame once, and nothing after that.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import Balance, RoutingPlan
from steelyard.spark.columns import (
    Key,
    named,
    require_frame,
    require_key,
)
from steelyard.spark.native_routing import BIN, with_bin, with_every_bin
from steelyard.spark.repartitioning import counted_plan, fitted
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.routing import (
    planner_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import Salts
from steelyard.validation import require_whole


def join(
    big: DataFrame,
    small: DataFrame,
    on: str | Sequence[str],
    how: str = "inner",
    *,
    workers: int,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Balance | RoutingPlan = Balance(),  # noqa: B008  # frozen
) -> DataFrame:
    """Like `big.join(small, on, how)`, without the hot partition; `how` is inner or left.

    The rows of `big` are shared out over `workers` partitions, as `repartition` does it. A row of
    `small` goes to the partitions that may hold its key: one, unless the key is hot in `big`.
    Where a row of `big` goes depends on its content, so rows that are equal in all columns, or in
    those of `salt`, stay together. What `repartition` says of `salt` is true here, too.

    What is balanced are rows of `big`, or their `weight`: if some find many partners in `small`,
    let it be the number of those.

    If `small` fits into the memory of every executor, `big.join(F.broadcast(small), on)` moves no
    row of `big` at all, and is faster.

    Args:
        big: The frame with hot keys.
        small: The frame to join with it.
        on: The columns of the key, which both frames have.
        how: "inner" or "left".
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A column of `big`, of numbers at least 0: how much each row counts; 1 by default.
        salt: The columns of `big` that tell rows of one key apart.
        routing: A `RoutingPlan` of `big`, which saves the counting pass, or the settings of the
            balancing.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> titles = spark.sql("SELECT * FROM VALUES ('hot', 'News'), ('7', 'Cats') AS t(page, title)")
    >>> joined = join(rows, titles, "page", "left", workers=4)
    >>> joined.where("id < 8 and title is not null").orderBy("id").collect()[-2:]
    [Row(page='hot', id=6, title='News'), Row(page='7', id=7, title='Cats')]
    >>> sizes = joined.groupBy(F.spark_partition_id()).count()
    >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
    [1.0, 1.0, 1.0, 1.0]
    """
    names = (on,) if isinstance(on, str | Column) else tuple(on)
    require_whole("workers", workers, least=1)
    _require_joinable(big, small, names, how)
    require_routing(routing, ["balance", "plan"])
    require_not_decided(routing, capacities=capacities, weight=weight)
    salts = Salts.of(big, salt, names, repeated(big))
    rows = big if how == "left" else big.where(_has_key(names))
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers)
        plan = fitted(routing, salts)
    else:
        planner = planner_of(routing, workers, capacities)
        plan = counted_plan(rows, names, planner, salts, weight=weight, sample=routing.sample)
    bucket = Key(names, plan.buckets).bucket()
    routed = _placed(with_bin(rows, plan, bucket, salts.column()), workers)
    copied = _placed(with_every_bin(small, plan, bucket), workers)
    return routed.join(copied, [BIN, *names], how).drop(BIN)


def _placed(frame: DataFrame, workers: int) -> DataFrame:
    """Every row in the partition of its bin, where Spark leaves it when it joins by bin and key.

    A bin is never null. Spark must be told, or it computes each bin twice: once to look for nulls.
    Not `repartition(workers, BIN)`: Spark takes that as advice, and shuffles by bin and key. (So it
    does here, too, under its internal setting requireAllClusterKeysForDistribution.)
    """
    surely = F.coalesce(F.col(BIN), F.lit(0))
    return frame.withColumn(BIN, surely).repartitionById(workers, F.col(BIN))


def _has_key(names: Sequence[str]) -> Column:
    """Whether a row can match any: nulls never do, so an inner join need not place them."""
    return reduce(and_, (named(name).isNotNull() for name in names))


def _require_joinable(big: DataFrame, small: DataFrame, names: Sequence[str], how: str) -> None:
    if how not in ("inner", "left"):
        raise ValueError(f"how must be 'inner' or 'left', got {how!r}")
    for which, frame in (("big", big), ("small", small)):
        require_frame(which, frame)
        if frame.isStreaming:
            raise ValueError(f"{which} is a stream, and join takes frames that end")
        require_key(frame, f"on ({which})", names)
    for name in names:
        _require_one_type(name, _kind(big, name), _kind(small, name))


def _require_one_type(name: str, in_big: str, in_small: str) -> None:
    """Refuse keys that Spark calls equal although their hashes differ."""
    if in_big != in_small:
        raise ValueError(
            f"on: column {name!r} is {in_big} in big and {in_small} in small, and equal keys of "
            "different types have different hashes; cast one to the type of the other"
        )


def _kind(frame: DataFrame, name: str) -> str:
    field = frame.schema[name]
    # Spark shows char(n) as a string, and pads the shorter one where it compares two of them.
    padded = (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", "")
    return padded if padded.startswith("char") else field.dataType.simpleString()
