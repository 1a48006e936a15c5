"""Run Python functions and mergeable aggregations on balanced workers.

A frame and its key enter; the results of the work leave. The packed exchange sends rows to workers
in Arrow blocks, by a plan that is made from counts of the rows. A worker is one or more Spark
tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.executor import packing
from steelyard.executor.pandas_function import OnPandas, PandasFunction
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
from steelyard.spark.executor_packages import ALWAYS
from steelyard.spark.hot_keys import HotKeyRows, HotKeys
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
from steelyard.spark.versions.partitions import to_partitions
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
    """Group rows by a key: a key has as few workers as possible, and no worker has too many rows.

    Rows that are read directly from files are planned during the read, and each part of a file has
    its own plan. Where files are sorted by the key, or have few rows, keys then have more copies
    than with one plan of all rows, which `steelyard.plan` makes. Rows that come from a shuffle may
    arrive in another order after a task retry. They are counted first, in a separate pass over the
    key columns; pass a plan as `routing` to avoid this pass.

    The messages of a key that is split do not keep their order. For a stream use `group_stream`.

    Args:
        frame: The rows to group; it must not be a stream.
        key: The columns of the key.
        workers: The number of workers.
        tasks_per_worker: The number of Spark tasks of each worker, each smaller than the one
            before. With more tasks, fast machines take more work than slow ones; every task costs
            time to start.
        whole_light_keys: Find the hot keys (`hot_keys`) first, and give `map_arrow` all rows of
            any other key in one table.
        capacities: Relative speeds of the workers, if they are known; equal by default.
        weight: A numeric column, at least 0, with the weight of each row; 1 by default.
        salt: The columns that distinguish rows of one key, as in `repartition`; they are used
            where rows are counted first, or routed by a plan.
        routing: The settings of the balancing, a `RoutingPlan` for `workers * tasks_per_worker`
            bins, or a `Scheme`. With a scheme, every source task routes message by message, like
            the paper's sources. A scheme requires rows that are read directly from files, and
            executors on which this package is installed.

    Returns:
        The grouped frame; its methods run work on the workers.

    Raises:
        TypeError: `frame` is not a Spark DataFrame, or an argument has a wrong type.
        ValueError: `frame` is a stream, a column is missing or unsuitable, a setting is out of
            range, or `routing` does not fit the other arguments.

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
    # Only to check `capacities`.
    Planner(workers, buckets=max(balance.buckets, workers), capacities=capacities)
    sizes = capacities_of_tasks(workers, tasks_per_worker, capacities)
    planner_of(balance, workers * tasks_per_worker, sizes)
    if isinstance(routing, RoutingPlan):
        require_workers_of(routing, workers, tasks_per_worker)
    repeats = repeated(frame)
    in_order = repeats.in_order_by([*key, *([] if weight is None else [weight])])
    if kind_of(routing) == "scheme" and not in_order:
        raise ValueError(
            "routing: a Scheme depends on the order of messages, and only rows that are read "
            "directly from files keep their order in a task retry; use a plan, or write the rows "
            "to files first"
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
    """A frame that is grouped by a key; its methods define the work of the workers.

    Args:
        frame: The rows.
        key: The key and its buckets.
        bins: The number of Spark tasks of all workers.
        routing: The settings of the balancing, a plan or a scheme.
        salts: The columns that distinguish rows of one key.
        in_order: Whether a task retry gets the same rows in the same order.
        weight: The column with the weight of each row, or None.
        capacities: The relative size of each bin, or None if all are equal.
        whole_light_keys: Whether only hot keys may be split.
    """

    frame: DataFrame = field(repr=False)
    key: Key
    bins: int
    routing: Routing = field(repr=False)
    salts: Salts
    in_order: bool
    weight: str | None
    capacities: Sequence[float] | None
    whole_light_keys: bool

    def map_arrow(self, function: Function, schema: StructType | str) -> DataFrame:
        """Run a function on the rows of each worker; the result is the union of its tables.

        The function gets a `pyarrow.Table` with the columns of the frame. It returns a table, or a
        record batch, of the given schema. A task calls it several times, each time with some of
        its rows, so the function must be correct for any split of any key. With `whole_light_keys`
        a task calls it once, with all its rows.

        Args:
            function: Maps a table of rows to a table of results.
            schema: The schema of the results.

        Returns:
            The results of all calls.

        Raises:
            TypeError: `function` is not callable.
            ValueError: Arrow has no type for a column of the frame or of `schema`.

        >>> import pyarrow.compute as pc
        >>> rows = spark.range(1000).selectExpr("id % 10 AS page", "id")
        >>> def total(table):
        ...     return pa.table({"rows": [table.num_rows], "sum": [pc.sum(table["id"]).as_py()]})
        >>> totals = group_by(rows, "page", workers=2).map_arrow(total, "rows long, sum long")
        >>> totals.selectExpr("sum(rows) AS rows", "sum(sum) AS sum").first()
        Row(rows=1000, sum=499500)
        """
        return self._mapped(function, self._promised("map_arrow", function, schema), schema)

    def map_pandas(self, function: PandasFunction, schema: StructType | str) -> DataFrame:
        """Run a function of pandas DataFrames on the rows of each worker, like `map_arrow`.

        The function gets a DataFrame with the columns of the frame, and returns a DataFrame with
        the columns of the schema, in any order. Values have the types that Spark's `mapInPandas`
        gives them. As with `map_arrow`, a task calls the function several times, so it must be
        correct for any split of any key. The executors need pandas.

        Args:
            function: Maps a DataFrame of rows to a DataFrame of results.
            schema: The schema of the results.

        Returns:
            The results of all calls.

        Raises:
            TypeError: `function` is not callable.
            ValueError: Arrow has no type for a column of the frame or of `schema`.

        >>> rows = spark.range(1000).selectExpr("id % 10 AS page", "id")
        >>> def scores(visits):
        ...     return visits.groupby("page", as_index=False)["id"].count()
        >>> counted = group_by(rows, "page", workers=2).map_pandas(scores, "page long, id long")
        >>> counted.groupBy("page").sum("id").orderBy("page").first()
        Row(page=0, sum(id)=100)
        """
        given = self._promised("map_pandas", function, schema)
        zone = self.frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
        modules = (*ALWAYS, "pandas")
        return self._mapped(OnPandas(function, given, zone), given, schema, modules)

    def _promised(self, call: str, function: object, schema: StructType | str) -> pa.Schema:
        """Return the Arrow schema of the results; refuse what cannot be called or sent."""
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        session = self.frame.sparkSession
        arrow_schema(session, call, self.frame.schema)
        return arrow_schema(session, "schema", session.createDataFrame([], schema).schema)

    def _mapped(
        self,
        function: Function,
        promised: pa.Schema,
        schema: StructType | str,
        modules: Sequence[str] = ALWAYS,
    ) -> DataFrame:
        work = Map(function, promised, all_at_once=self.whole_light_keys)
        return self._exchanged(self.frame.columns).mapInArrow(shipped(work, modules), schema)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """Return one row for each key: the key columns, then one column for each aggregator.

        Workers keep partial states, which are then merged for each key. For aggregates that Spark
        can combine before a shuffle, such as a count or a sum, `frame.groupBy` is faster and as
        safe from hot keys. Use this method for sketches and for your own aggregators.

        Args:
            aggregators: The aggregators, such as `Count()`.

        Returns:
            The results.

        Raises:
            TypeError: An argument is not an aggregator.
            ValueError: A column of an aggregator is missing, or Arrow has another type for it.

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
        # The bucket is one more key column: it decides where the states of a key are merged.
        by_bucket = Aggregation(
            aggregators, [_BUCKET, *keys], fields.append(pa.field(_BUCKET, pa.int32()))
        )
        results = spark_schema(wanted.result_schema).fields[len(keys) :]
        kinds = StructType([self.frame.schema[name] for name in keys] + results)
        partials = self._exchanged(list(read), with_bucket=True).mapInArrow(
            shipped(Add(by_bucket, _BUCKET, self.bins)), packing.SCHEMA
        )
        met = to_partitions(partials, self.bins, F.col("bin")).select("block")
        return met.mapInArrow(shipped(Merge(by_bucket, _BUCKET)), kinds)

    @property
    def hot_keys(self) -> HotKeyRows:
        """The keys that are too large for one task; the first access counts the rows.

        The result is a sequence of rows, which a terminal or a notebook shows as a table.

        >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page")
        >>> group_by(rows, "page", workers=4, whole_light_keys=True).hot_keys
        1 hot key
        page  of the rows
        hot       50.00 %
        """
        return self._hot_keys.keys

    # Both need a counting pass, which runs once for all results.

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
        """Return Arrow blocks of these columns, in the partitions of their workers."""
        frame, destinations = self._routed()
        kept = [*columns, *([_BUCKET] if with_bucket else []), *destinations.columns]
        bucket = self.key.bucket().alias(_BUCKET)
        pack = shipped(packing.Packer(destinations, tuple(kept)))
        rows = frame.select("*", bucket).select(*map(named, kept))
        # Spark resolves columns by name here and fails on dots, so the columns are renamed.
        numbered = rows.toDF(*(f"c{i}" for i in range(len(kept))))
        blocks = numbered.mapInArrow(pack, packing.SCHEMA)
        return to_partitions(blocks, self.bins, F.col("bin")).select("block")

    def _routed(self) -> tuple[DataFrame, packing.Destinations]:
        """Return the frame with the columns for routing, and how a source task uses them."""
        if not isinstance(self.routing, Balance | RoutingPlan):
            hashed = self.frame.withColumn(_HASH, self.key.hashed())
            return hashed, packing.RoutedHere(_HASH, self.routing, self.bins)
        if self.whole_light_keys:
            plan, bucket = self._plan_of_hot_keys, self._hot_keys.bucket()
        elif isinstance(self.routing, Balance) and self.in_order:
            return self._planned_during_read(self.routing)
        else:
            plan, bucket = self._plan, self.key.bucket()
        return with_bin(self.frame, plan, bucket, self.salts.column()), packing.Decided(BIN)

    def _planned_during_read(self, balance: Balance) -> tuple[DataFrame, packing.Destinations]:
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
