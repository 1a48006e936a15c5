"""Join two frames without a hot partition: the rows of a hot key are split over partitions.

Two frames and their key enter; the rows of Spark's own join leave, in partitions of equal weight.
Matching rows of the other frame are copied to each partition of a hot key. Spark shuffles each
frame once, and the join needs no other shuffle.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame

from steelyard.plans import Balance, RoutingPlan
from steelyard.plans.join_plan import JoinPlan
from steelyard.spark.columns import Key
from steelyard.spark.joins.join_keys import join_keys
from steelyard.spark.joins.join_planning import JoinPlanning
from steelyard.spark.joins.join_types import JoinType, join_type
from steelyard.spark.joins.match_counts import has_key
from steelyard.spark.joins.meeting import Meeting
from steelyard.spark.repartitioning import fitted
from steelyard.spark.resolved_columns import named_columns
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.routing import (
    planner_of,
    require_key_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import Salts
from steelyard.validation import require_whole


def join(
    big: DataFrame,
    small: DataFrame,
    on: str | Sequence[str] | Mapping[str, str],
    how: str = "inner",
    *,
    workers: int,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Balance | RoutingPlan = Balance(),  # noqa: B008  # frozen
) -> DataFrame:
    """Join two frames like `big.join(small, on, how)`, without the hot partition.

    The rows of `big` are distributed over `workers` partitions, as by `repartition`. A row of
    `small` goes to every partition that may have its key: one, unless the key is hot. If a key has
    many rows in both frames, Steelyard balances the pairs of matching rows. It then may divide the
    rows of `small`, too, and copy rows of `big`. The partition of a row depends on its content.
    Rows that are equal in all columns, or in those of `salt`, stay together. The rules of
    `repartition` for `salt` apply here, too.

    This call counts the rows of both frames at once, before an action asks for the result. With a
    `RoutingPlan` it counts nothing, and balances the rows of `big` by the plan. With `weight` it
    counts only `big`, and balances the weights.

    If `small` fits into the memory of every executor, `big.join(F.broadcast(small), on)` is faster,
    because it does not move the rows of `big`.

    Args:
        big: The frame with hot keys.
        small: The frame to join with it.
        on: The columns of the key. If their names differ, a dictionary from columns of `big` to
            columns of `small`; the result then has all columns of both frames.
        how: The type of the join, as Spark spells it: "inner", "left", "right", "full", "semi",
            "anti", or a longer name such as "left_outer".
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A numeric column of `big`, at least 0, with the weight of each row; 1 by default.
        salt: The columns of `big` that distinguish rows of one key.
        routing: A `RoutingPlan` of `big`, which avoids the counting, or the settings of the
            balancing.

    Returns:
        The joined rows, with the columns of Spark's own join.

    Raises:
        TypeError: `big` or `small` is not a Spark DataFrame, or an argument has a wrong type.
        ValueError: A frame is a stream, a key column is missing or has types that Spark cannot
            compare without loss, or a setting is out of range.

    >>> from pyspark.sql import functions as F
    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> titles = spark.sql("SELECT * FROM VALUES ('hot', 'News'), ('7', 'Cats') AS t(page, title)")
    >>> joined = join(rows, titles, "page", "left", workers=4)
    >>> joined.where("id < 8 and title is not null").orderBy("id").collect()[-2:]
    [Row(page='hot', id=6, title='News'), Row(page='7', id=7, title='Cats')]
    >>> sizes = joined.groupBy(F.spark_partition_id()).count()
    >>> sorted(round(row["count"] / 2500, 1) for row in sizes.collect())
    [1.0, 1.0, 1.0, 1.0]
    """
    kind = join_type(how)
    require_whole("workers", workers, least=1)
    keys = join_keys(big, small, on, kind)
    require_routing(routing, ["balance", "plan"])
    require_not_decided(routing, capacities=capacities, weight=weight)
    fields: dict[str, Column] = {}
    weight, salt = named_columns(big, weight, salt, fields)
    wide = big.withColumns(fields) if fields else big
    left, right = keys.added(wide, "big"), keys.added(small, "small")
    salts = Salts.of(left, salt, keys.known("big"), repeated(left))
    others = _salts_of_small(right, keys.known("small")) if _may_divide(kind, routing) else None
    rows = left if kind.keeps_big else left.where(has_key(keys.names))
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers)
        require_key_of(routing, tuple(key.big.name for key in keys.columns))
        keys.require_plan_fits()
        plan = JoinPlan.by_big(fitted(routing, salts))
        key = Key(keys.names, routing.buckets)
    else:
        planner, key = planner_of(routing, workers, capacities), Key(keys.names, routing.buckets)
        planning = JoinPlanning(rows, right, key, salts, others, routing.sample)
        by_pairs = weight is None and kind.has_pairs and workers > 1
        plan = planning.by_pairs(planner) if by_pairs else planning.by_rows(planner, weight)
    meeting = Meeting(key, keys.kinds, plan, kind)
    routed = keys.reduced(meeting.routed(rows, salts.column()).drop(*fields), "big")
    copied = meeting.copied(right, None if others is None else others.column())
    copied = keys.reduced(copied, "small")
    joined = meeting.joined(*meeting.with_witnesses(routed, copied, rows, right))
    return keys.restored(joined)


def _may_divide(how: JoinType, routing: Balance | RoutingPlan) -> bool:
    """Whether rows of `small` of one key may go to different partitions."""
    return how.keeps_small or (how.has_pairs and isinstance(routing, Balance))


def _salts_of_small(small: DataFrame, key: tuple[str, ...]) -> Salts | None:
    """Return the columns that distinguish rows of one key; None if there are none."""
    salts = Salts.of(small, None, key, repeated(small))
    return None if set(salts.names) <= set(key) else salts
