"""Python work on balanced workers, and aggregates whose states merge.

A frame and its key enter; the results of the work leave. Rows go to workers by the packed exchange:
split by a plan made of the rows themselves, in blocks, and each worker is one or more Spark tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.executor import packing
from steelyard.executor.worker import Add, Function, Map, Merge
from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.plans.task_sizes import capacities_of_tasks
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema, spark_schema
from steelyard.spark.columns import (
    HIDDEN,
    Key,
    named,
    require_frame,
    require_key,
    require_weight,
)
from steelyard.spark.hot_keys import HotKeys
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.repartitioning import counted_plan, fitted, warn_of_equal_rows
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.routing import (
    Routing,
    balance_of,
    kind_of,
    planner_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import Salts
from steelyard.spark.shipping import shipped
from steelyard.validation import require_whole

_BUCKET, _WEIGHT, _HASH = f"{HIDDEN}bucket", f"{HIDDEN}weight", f"{HIDDEN}hash"


def group_by(
    frame: DataFrame,
    *key: str,
    workers: int,
    tasks_per_worker: int = 1,
    whole_light_keys: bool = False,
    capacities: Sequence[float] | None = None,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Routing = Balance(),  # noqa: B008  # frozen
) -> "GroupedFrame":
    """Rows of a key together on as few workers as hold them, and no worker with too many.

    What is read straight from files is planned while it is read, each part of a file by itself:
    where files are sorted by the key, or have few rows, keys get more copies than by a plan of
    all rows, which `steelyard.plan` makes. Rows that come out of a shuffle may come in another
    order when a task is run again, so they are counted first, in a pass of its own over the key
    columns; pass a plan as `routing` to save it.

    The messages of a key that is split do not keep their order. For a stream use `group_stream`.

    Args:
        frame: The rows to group; it must not be a stream.
        key: The columns of the key.
        workers: The number of workers.
        tasks_per_worker: Spark tasks of each worker, each smaller than the one before. More of
            them let fast machines take more than slow ones, and cost more to start.
        whole_light_keys: Find the hot keys (`hot_keys`) first, and give `map_arrow` all rows of
            any other key in one table.
        capacities: Relative speeds of the workers, if they are known; equal by default.
        weight: A column of numbers, at least 0: how much each row counts; 1 by default.
        salt: The columns that tell rows of one key apart, as in `repartition`; they are used where
            rows are counted first, or routed by a plan.
        routing: The settings of the balancing, a `RoutingPlan` for `workers * tasks_per_worker`
            bins, or a `Scheme`, by which every source task routes message by message as the
            paper's sources do. A scheme needs rows that are read straight from files, and
            executors that have this package.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> import steelyard as sy
    >>> counts = group_by(rows, "page", workers=4).aggregate(sy.Count(), sy.Max("id"))
    >>> counts.orderBy("count", ascending=False).first()
    Row(page='hot', count=5000, max(id)=9998)
    """
    require_whole("workers", workers, least=1)
    require_whole("tasks_per_worker", tasks_per_worker, least=1)
    require_frame("frame", frame)
    if frame.isStreaming:
        raise ValueError("frame is a stream; use sy.group_stream(stream, ...)")
    require_key(frame, "key", key)
    require_weight(frame, weight)
    require_routing(routing, ["balance", "plan", "scheme"])
    require_not_decided(
        routing,
        capacities=capacities,
        weight=weight,
        whole_light_keys=True if whole_light_keys else None,
    )
    balance = balance_of(routing)
    Planner(workers, buckets=max(balance.buckets, workers), capacities=capacities)  # refuses bad
    sizes = capacities_of_tasks(workers, tasks_per_worker, capacities)
    planner_of(balance, workers * tasks_per_worker, sizes)
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers, tasks_per_worker)
    repeats = repeated(frame)
    in_order = repeats.in_order_by([*key, *([] if weight is None else [weight])])
    if kind_of(routing) == "scheme" and not in_order:
        raise ValueError(
            "routing: a Scheme routes message by message, which depends on their order, and only "
            "rows read straight from files keep it when a task is run again; use a plan, or write "
            "the rows to files first"
        )
    return GroupedFrame(
        frame=frame,
        key=Key(key, routing.buckets if isinstance(routing, RoutingPlan) else balance.buckets),
        bins=workers * tasks_per_worker,
        routing=routing,
        salts=Salts.of(frame, salt, key, repeats),
        in_order=in_order,
        weight=weight,
        capacities=sizes,
        whole_light_keys=whole_light_keys,
    )


@dataclass(frozen=True, eq=False)
class GroupedFrame:
    """A frame whose rows will go to workers by their keys; say with it what the workers do."""

    frame: DataFrame = field(repr=False)
    key: Key
    bins: int
    routing: Routing = field(repr=False)
    salts: Salts
    in_order: bool
    """A task that is run again gets the same rows in the same order."""
    weight: str | None
    capacities: Sequence[float] | None
    whole_light_keys: bool

    def map_arrow(self, function: Function, schema: StructType | str) -> DataFrame:
        """Run a function on the rows of each worker; its tables together are the result.

        It gets a `pyarrow.Table` with the columns of the frame and returns a table, or a record
        batch, of the given schema. It is called several times in a task, each time with some of
        its rows, so it must be right for any split of any key; with `whole_light_keys` once,
        with all of them.

        >>> import pyarrow.compute as pc
        >>> rows = spark.range(1000).selectExpr("id % 10 AS page", "id")
        >>> def total(table):
        ...     return pa.table({"rows": [table.num_rows], "sum": [pc.sum(table["id"]).as_py()]})
        >>> totals = group_by(rows, "page", workers=2).map_arrow(total, "rows long, sum long")
        >>> totals.selectExpr("sum(rows) AS rows", "sum(sum) AS sum").first()
        Row(rows=1000, sum=499500)
        """
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        session = self.frame.sparkSession
        arrow_schema(session, "map_arrow", self.frame.schema)
        promised = session.createDataFrame([], schema).schema
        given = arrow_schema(session, "schema", promised)
        work = Map(function, given, all_at_once=self.whole_light_keys)
        return self._exchanged(self.frame.columns).mapInArrow(shipped(work), schema)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """The results of these aggregators for every key: the key columns, then one column each.

        Workers keep partial states, which are then merged key by key. For what Spark itself can
        combine before a shuffle, like a count or a sum, `frame.groupBy` is faster and as safe
        from hot keys; this is for sketches and for aggregators of your own.

        >>> rows = spark.range(100).selectExpr("id % 2 AS parity", "id")
        >>> from steelyard import Mean
        >>> group_by(rows, "parity", workers=2).aggregate(Mean("id")).sort("parity").collect()
        [Row(parity=0, avg(id)=49.0), Row(parity=1, avg(id)=50.0)]
        """
        for aggregator in aggregators:
            if not isinstance(aggregator, Aggregator):
                raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        keys = list(self.key.names)
        fields = aggregated_schema(self.frame, keys, aggregators)
        wanted = Aggregation(aggregators, keys, fields)
        read = dict.fromkeys([*keys, *(c for a in aggregators for c in a.columns)])
        # The bucket goes along as one more key: it says where the states of a key meet.
        by_bucket = Aggregation(
            aggregators, [_BUCKET, *keys], fields.append(pa.field(_BUCKET, pa.int32()))
        )
        results = spark_schema(wanted.result_schema).fields[len(keys) :]
        kinds = StructType([self.frame.schema[name] for name in keys] + results)
        partials = self._exchanged(list(read), with_bucket=True).mapInArrow(
            shipped(Add(by_bucket, _BUCKET, self.bins)), packing.SCHEMA
        )
        met = partials.repartitionById(self.bins, F.col("bin")).select("block")
        return met.mapInArrow(shipped(Merge(by_bucket, _BUCKET)), kinds)

    @property
    def hot_keys(self) -> list[Row]:
        """The keys that are too large for one task; they are counted when first asked for.

        >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page")
        >>> group_by(rows, "page", workers=4, whole_light_keys=True).hot_keys
        [Row(page='hot')]
        """
        return list(self._hot_keys.keys)

    # Both are found by counting: once, however many results are asked for.

    @cached_property
    def _hot_keys(self) -> HotKeys:
        return HotKeys.of(self.frame, self.key, self._planner(), self.weight)

    @cached_property
    def _plan_of_hot_keys(self) -> RoutingPlan:
        """A plan in which only hot keys are split."""
        plan = fitted(self._hot_keys.plan, self.salts)
        warn_of_equal_rows(self.frame, plan, self._hot_keys.bucket(), self.salts)
        return plan

    @cached_property
    def _plan(self) -> RoutingPlan:
        if isinstance(self.routing, RoutingPlan):
            return fitted(self.routing, self.salts)
        return counted_plan(
            self.frame,
            self.key.names,
            self._planner(),
            self.salts,
            weight=self.weight,
            sample=balance_of(self.routing).sample,
        )

    def _planner(self) -> Planner:
        balance = replace(balance_of(self.routing), buckets=self.key.buckets)
        return planner_of(balance, self.bins, self.capacities)

    def _exchanged(self, columns: Sequence[str], *, with_bucket: bool = False) -> DataFrame:
        """Blocks of these columns, at their workers."""
        frame, destinations = self._routed()
        kept = [*columns, *([_BUCKET] if with_bucket else []), *destinations.columns]
        bucket = self.key.bucket().alias(_BUCKET)
        pack = shipped(packing.Packer(destinations, tuple(kept)))
        rows = frame.select("*", bucket).select(*map(named, kept))
        # Spark looks columns up by name there, and stumbles over dots: they are renamed on the way.
        numbered = rows.toDF(*(f"c{i}" for i in range(len(kept))))
        blocks = numbered.mapInArrow(pack, packing.SCHEMA)
        return blocks.repartitionById(self.bins, F.col("bin")).select("block")

    def _routed(self) -> tuple[DataFrame, packing.Destinations]:
        """The frame with what a source task needs to know, and how it decides."""
        if not isinstance(self.routing, Balance | RoutingPlan):
            hashed = self.frame.withColumn(_HASH, self.key.hashed())
            return hashed, packing.RoutedHere(_HASH, self.routing, self.bins)
        if self.whole_light_keys:
            plan, bucket = self._plan_of_hot_keys, self._hot_keys.bucket()
        elif isinstance(self.routing, Balance) and self.in_order:
            return self._planned_while_read(self.routing)
        else:
            plan, bucket = self._plan, self.key.bucket()
        return with_bin(self.frame, plan, bucket, self.salts.column()), packing.Decided(BIN)

    def _planned_while_read(self, balance: Balance) -> tuple[DataFrame, packing.Destinations]:
        place = f"{HIDDEN}place"
        frame = self.frame.withColumn(place, self.key.bucket())
        if self.weight is not None:
            frame = frame.withColumn(_WEIGHT, named(self.weight).cast("double"))
        destinations = packing.PlannedHere(
            bucket=place,
            weight=_WEIGHT if self.weight is not None else None,
            bins=self.bins,
            epsilon=balance.epsilon,
            buckets=self.key.buckets,
            capacities=self.capacities,
        )
        return frame, destinations
