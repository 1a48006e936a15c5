"""Join two frames without a hot partition: the rows of a hot key are split over partitions.

Two frames and their common columns enter; the rows of Spark's own join leave, in partitions of
equal weight. Matching rows of the other frame are copied to each partition of a hot key. Spark
shuffles each frame once, and the join needs no other shuffle.
"""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from steelyard.plans import Balance, RoutingPlan
from steelyard.spark.columns import (
    HIDDEN,
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
from steelyard.spark.versions.partitions import can_join_in_place, to_joined_partitions
from steelyard.validation import require_whole

_HASH = f"{HIDDEN}hash"


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
    """Join two frames like `big.join(small, on, how)`, without the hot partition.

    The rows of `big` are distributed over `workers` partitions, as by `repartition`. A row of
    `small` goes to every partition that may have its key: one, unless the key is hot in `big`. The
    partition of a row of `big` depends on its content. Rows that are equal in all columns, or in
    those of `salt`, stay together. The rules of `repartition` for `salt` apply here, too.

    The balance is by the rows of `big`, or by their `weight`. If some keys have many matching rows
    in `small`, pass the number of matches as the weight.

    If `small` fits into the memory of every executor, `big.join(F.broadcast(small), on)` is faster,
    because it does not move the rows of `big`.

    Args:
        big: The frame with hot keys.
        small: The frame to join with it.
        on: The columns of the key, which both frames have.
        how: "inner" or "left".
        workers: The number of partitions.
        capacities: Relative sizes of the partitions; equal by default.
        weight: A numeric column of `big`, at least 0, with the weight of each row; 1 by default.
        salt: The columns of `big` that distinguish rows of one key.
        routing: A `RoutingPlan` of `big`, which avoids the counting pass, or the settings of the
            balancing.

    Returns:
        The joined rows: the key columns, then the other columns of `big` and of `small`.

    Raises:
        TypeError: `big` or `small` is not a Spark DataFrame, or an argument has a wrong type.
        ValueError: A frame is a stream, a key column is missing or has different types in the two
            frames, or a setting is out of range.

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
    routed = with_bin(rows, plan, bucket, salts.column())
    copied = with_every_bin(small, plan, bucket)
    if can_join_in_place(big.sparkSession, [big.schema[name].dataType for name in names]):
        keys = [named(name) for name in names]
        routed, copied = (to_joined_partitions(f, workers, BIN, keys) for f in (routed, copied))
        return routed.join(copied, [BIN, *names], how).drop(BIN)
    return _joined_by_hash(routed, copied, names, how, workers)


def _joined_by_hash(
    routed: DataFrame, copied: DataFrame, names: Sequence[str], how: str, workers: int
) -> DataFrame:
    """Join by the bin and the hash of the key, and compare the keys of rows with equal hashes."""
    hashed = F.when(_has_key(names), Key(tuple(names), 1).hashed())  # null keys match nothing
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
    joined = routed.join(copied.withColumnsRenamed(hidden), reduce(and_, equal), how)
    return joined.drop(BIN, _HASH, *hidden.values())


def _has_key(names: Sequence[str]) -> Column:
    """Return whether no key column is null; null keys never match, so an inner join drops them."""
    return reduce(and_, (named(name).isNotNull() for name in names))


def _require_joinable(big: DataFrame, small: DataFrame, names: Sequence[str], how: str) -> None:
    if how not in ("inner", "left"):
        raise ValueError(f"how must be 'inner' or 'left', got {how!r}")
    for which, frame in (("big", big), ("small", small)):
        require_frame(which, frame)
        if frame.isStreaming:
            raise ValueError(f"{which} is a stream; join requires DataFrames that do not stream")
        require_key(frame, f"on ({which})", names)
    for name in names:
        _require_one_type(name, _kind(big, name), _kind(small, name))


def _require_one_type(name: str, in_big: str, in_small: str) -> None:
    """Refuse keys of different types, which may be equal in Spark but have different hashes."""
    if in_big != in_small:
        raise ValueError(
            f"on: column {name!r} is {in_big} in big and {in_small} in small, and equal keys of "
            "different types have different hashes; cast one column to the type of the other"
        )


def _kind(frame: DataFrame, name: str) -> str:
    field = frame.schema[name]
    # Spark shows char(n) as a string, and pads the shorter value when it compares two of them.
    padded = (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", "")
    return padded if padded.startswith("char") else field.dataType.simpleString()
