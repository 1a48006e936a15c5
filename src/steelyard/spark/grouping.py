"""Python work on balanced workers, and aggregates whose states merge.

A frame and its key enter; the results of the work leave. Rows go to workers by the packed exchange:
split by a plan made of the rows themselves, in blocks, and each worker is one or more Spark tasks.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.executor import packing
from steelyard.executor.worker import Add, Function, Map, Merge
from steelyard.plans import Planner, RoutingPlan
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
from steelyard.spark.grouped import Grouped
from steelyard.spark.hot_keys import HotKeys
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.repartitioning import (
    DEFAULT_EPSILON,
    counted_plan,
    fitted,
    refuse_beside_a_plan,
    warn_of_equal_rows,
)
from steelyard.spark.retries.repeated import repeated
from steelyard.spark.salts import Salts
from steelyard.spark.shipping import shipped
from steelyard.spark.streaming.grouping import group_stream
from steelyard.spark.streaming.settings import StreamSettings
from steelyard.validation import require_whole

if TYPE_CHECKING:
    from steelyard.schemes import Scheme

_BUCKET, _WEIGHT, _HASH = f"{HIDDEN}bucket", f"{HIDDEN}weight", f"{HIDDEN}hash"


def group_by(
    frame: DataFrame,
    *key: str,
    workers: int,
    plan: RoutingPlan | None = None,
    scheme: "Scheme | None" = None,
    salt: Sequence[str] | None = None,
    weight: str | None = None,
    epsilon: float = DEFAULT_EPSILON,
    capacities: Sequence[float] | None = None,
    buckets: int = 8192,
    tasks_per_worker: int = 1,
    whole_light_keys: bool = False,
    control: str | os.PathLike[str] | None = None,
    placement: str = "pull",
    virtual_workers: int | None = None,
    slot: int | str = 1,
    period: int | str = 1,
    decay: float = 0.5,
    time: str | None = None,
    window: str | None = None,
    slide: str | None = None,
    watermark: str | None = None,
    arrived: str | None = None,
) -> Grouped:
    """Rows of a key together on as few workers as hold them, and no worker with too many.

    What is read straight from files is planned while it is read, each part of a file by itself:
    where files are sorted by the key, or have few rows, keys get more copies than by a `plan` of
    all rows, which `steelyard.plan` makes. Rows that come out of a shuffle may come in another
    order when a task is run again, so they are counted first, in a pass of its own over the key
    columns; give a `plan` to save it. `salt` (used where rows are counted first, or by a plan; what
    it may be, `repartition` says),
    `weight`, `epsilon`, `capacities` and `buckets` are those of `repartition` and `plan`.

    With `scheme` every source task routes by that scheme instead, message by message, as the
    paper's sources do: only for what is read straight from files, and only where the executors
    have this package.

    Each worker is `tasks_per_worker` Spark tasks, which come in rounds, each smaller than the one
    before, so that little is left to wait for in the end. More of them let fast machines take more
    than slow ones, and cost more to start. A plan must be for `workers * tasks_per_worker` bins.

    With `whole_light_keys` the hot keys are found and listed (`hot_keys`), and all rows of any
    other key are in one task: `map_arrow` hands them to the function in one table.

    A stream may be grouped as well; its results are streams. For streams only:

    - `control`: a folder that driver and executors share, by which the workers of one query learn:
      sources follow the plans and assignments that are published there. Without it every part of a
      micro-batch is planned while it is read, and nothing is learned.
    - `placement`: "pull" (workers are tasks, keep nothing, and whoever is free takes the next one)
      or "delegated" (workers stay where their state is, `virtual_workers` of which, 100 each at
      first, move from busy ones to idle ones). `capacities` are a first guess for the latter.
    - `slot`: virtual workers move, and plans are renewed, after so many micro-batches, or the first
      one after a length of time such as "30 seconds". Counts of earlier slots fade by `decay`.
    - `period`: delegated workers send partial results on and forget them after so many
      micro-batches, or a length of event time. They come that much later.
    - `time`, `window`, `slide`, `watermark`: windows of event time, as in Spark's `window` and
      `withWatermark`. The stream must not have a watermark already.
    - `arrived`: a column of times from which on latencies are measured; Kafka's by default.

    The messages of a key that is split do not keep their order.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> import steelyard as sy
    >>> counts = group_by(rows, "page", workers=4).aggregate(sy.Count(), sy.Max("id"))
    >>> counts.orderBy("count", ascending=False).first()
    Row(page='hot', count=5000, max(id)=9998)
    """
    require_whole("workers", workers, least=1)
    require_whole("tasks_per_worker", tasks_per_worker, least=1)
    require_frame("frame", frame)
    require_key(frame, "key", key)
    stream = StreamSettings(
        control=control,
        placement=placement,
        virtual_workers=virtual_workers,
        slot=slot,
        period=period,
        decay=decay,
        time=time,
        window=window,
        slide=slide,
        watermark=watermark,
        arrived=arrived,
    )
    stream.refuse_unless_stream(frame)
    require_weight(frame, weight)
    bins = workers * tasks_per_worker
    Planner(workers, epsilon, max(buckets, workers), capacities)  # refuses what cannot be
    sizes = capacities_of_tasks(workers, tasks_per_worker, capacities)
    Planner(bins, epsilon, buckets, sizes)
    given = [name for name, it in (("plan", plan), ("scheme", scheme)) if it is not None]
    given += ["whole_light_keys"] if whole_light_keys else []
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} each say where rows go; give one of them")
    if plan is not None or scheme is not None:
        refuse_beside_a_plan(None, bins, epsilon=epsilon, capacities=capacities, weight=weight)
    if frame.isStreaming:
        if whole_light_keys:
            raise ValueError("whole_light_keys needs all rows of a key, and a stream goes on")
        return group_stream(
            frame,
            Key(key, buckets if plan is None else plan.buckets),
            workers,
            stream,
            plan=plan,
            scheme=scheme,
            salt=salt,
            weight=weight,
            epsilon=epsilon,
            capacities=capacities,
            tasks_per_worker=tasks_per_worker,
        )
    if plan is not None and plan.bins != bins:
        raise ValueError(
            f"the plan is for {plan.bins} bins, not for {workers} workers of "
            f"{tasks_per_worker} tasks each"
        )
    repeats = repeated(frame)
    decides = [*key, *([] if weight is None else [weight])]
    in_order = repeats.in_order_by(decides)
    if scheme is not None and not in_order:
        raise ValueError(
            "scheme: routing message by message depends on their order, which only rows read "
            "straight from files keep when a task is run again; use a plan, or write the rows "
            "to files first"
        )
    return FrameGrouped(
        frame=frame,
        key=Key(key, buckets if plan is None else plan.buckets),
        bins=bins,
        plan=plan,
        scheme=scheme,
        salts=Salts.of(frame, salt, key, repeats),
        in_order=in_order,
        weight=weight,
        epsilon=epsilon,
        capacities=sizes,
        whole_light_keys=whole_light_keys,
    )


@dataclass(frozen=True, eq=False)
class FrameGrouped(Grouped):
    """A frame whose rows will go to workers by their keys; say with it what the workers do."""

    frame: DataFrame = field(repr=False)
    key: Key
    bins: int
    plan: RoutingPlan | None = field(repr=False)
    scheme: "Scheme | None"
    salts: Salts
    in_order: bool
    """A task that is run again gets the same rows in the same order."""
    weight: str | None
    epsilon: float
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
        """The keys that are split, with `whole_light_keys`: those too large for one task."""
        if not self.whole_light_keys:
            raise ValueError("hot keys are listed with whole_light_keys=True")
        return list(self._hot_keys.keys)

    # Both are found by counting: once, however many results are asked for.

    @cached_property
    def _hot_keys(self) -> HotKeys:
        found = HotKeys.of(self.frame, self.key, self._planner(), self.weight)
        found = replace(found, plan=fitted(found.plan, self.salts))
        warn_of_equal_rows(self.frame, found.plan, found.bucket(), self.salts)
        return found

    @cached_property
    def _plan(self) -> RoutingPlan:
        if self.plan is not None:
            return fitted(self.plan, self.salts)
        return counted_plan(
            self.frame, self.key.names, self._planner(), self.salts, weight=self.weight
        )

    def _planner(self) -> Planner:
        return Planner(self.bins, self.epsilon, self.key.buckets, self.capacities)

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
        if self.scheme is not None:
            hashed = self.frame.withColumn(_HASH, self.key.hashed())
            return hashed, packing.RoutedHere(_HASH, self.scheme, self.bins)
        if self.whole_light_keys:
            plan, bucket = self._hot_keys.plan, self._hot_keys.bucket()
        elif self.plan is None and self.in_order:
            return self._planned_while_read()
        else:
            plan, bucket = self._plan, self.key.bucket()
        return with_bin(self.frame, plan, bucket, self.salts.column()), packing.Decided(BIN)

    def _planned_while_read(self) -> tuple[DataFrame, packing.Destinations]:
        place = f"{HIDDEN}place"
        frame = self.frame.withColumn(place, self.key.bucket())
        if self.weight is not None:
            frame = frame.withColumn(_WEIGHT, named(self.weight).cast("double"))
        destinations = packing.PlannedHere(
            bucket=place,
            weight=_WEIGHT if self.weight is not None else None,
            bins=self.bins,
            epsilon=self.epsilon,
            buckets=self.key.buckets,
            capacities=self.capacities,
        )
        return frame, destinations
