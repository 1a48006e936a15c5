"""Run Python functions and mergeable aggregations on balanced workers.

A frame and its key enter; the results of the work leave. The packed exchange sends rows to workers
in Arrow blocks, by a plan that is made from counts of the rows. A worker is one or more Spark
tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.executor import packing
from steelyard.executor.key_worker import PARTS, ApplyBeforeMerge, MergeByKey
from steelyard.executor.pandas_function import OnPandas, PandasFunction
from steelyard.executor.worker import Add, Function, Map, Merge
from steelyard.plans import Balance, Planner, RoutingPlan
from steelyard.plans.task_sizes import capacities_of_tasks
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema, spark_schema
from steelyard.spark.columns import (
    Key,
    require_distinct_results,
    require_frame,
    visible,
    visible_schema,
)
from steelyard.spark.executor_packages import ALWAYS, WITH_PANDAS
from steelyard.spark.hot_keys import HotKeyRows
from steelyard.spark.key_functions import KeyFunctions, require_plain_key
from steelyard.spark.packed_frame import BUCKET, PackedFrame
from steelyard.spark.resolved_columns import ResolvedColumns
from steelyard.spark.routing import (
    Routing,
    balance_of,
    kind_of,
    planner_of,
    require_key_of,
    require_not_decided,
    require_routing,
    require_workers_of,
)
from steelyard.spark.salts import Salts
from steelyard.spark.shipping import shipped
from steelyard.spark.versions.partitions import to_partitions
from steelyard.validation import require_whole


def group_by(
    frame: DataFrame,
    *key: str | Column,
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
        key: The columns of the key: names, fields such as "user.id", or deterministic expressions
            such as `F.lower("page")`.
        workers: The number of workers.
        tasks_per_worker: The number of Spark tasks of each worker, each smaller than the one
            before. With more tasks, fast machines take more work than slow ones; every task costs
            time to start.
        whole_light_keys: Find the hot keys (`hot_keys`) first, and give `map_arrow` all rows of
            any other key in one table. `apply_in_pandas` does so always.
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
    found = ResolvedColumns.of(frame, key, weight=weight, salt=salt)
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
        require_key_of(routing, found.texts)
    if kind_of(routing) == "scheme" and not found.in_order:
        raise ValueError(
            "routing: the result of a Scheme depends on the order of the rows, and this frame may "
            "have another order when Spark retries a task; pass sy.Balance() or a RoutingPlan, or "
            "write the frame to files first and read these files"
        )
    return GroupedFrame(
        frame=found.wide,
        key=found.hashed_key(
            routing.buckets if isinstance(routing, RoutingPlan) else balance.buckets
        ),
        bins=workers * tasks_per_worker,
        routing=routing,
        salts=found.salts(),
        in_order=found.in_order,
        weight=found.weight,
        capacities=sizes,
        whole_light_keys=whole_light_keys,
    )


@dataclass(frozen=True, eq=False)
class GroupedFrame(PackedFrame):
    """A frame that is grouped by a key; its methods define the work of the workers.

    Args:
        frame: The rows, with temporary columns for a key or a weight that is computed.
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
        work = OnPandas(function, given, self._zone)
        return self._mapped(work, given, schema, WITH_PANDAS)

    def apply_in_pandas(
        self,
        function: PandasFunction,
        schema: StructType | str,
        hot: PandasFunction | None = None,
        merge: PandasFunction | None = None,
    ) -> DataFrame:
        """Run a function on all rows of one key at a time, like Spark's `applyInPandas`.

        Light keys, the keys that are not in `hot_keys`, stay whole, with and without
        `whole_light_keys`: the function is called exactly once for each of them, with a DataFrame
        of all its rows. Workers share the rows of a hot key. Each of these workers calls `hot`
        once, with its part of the rows; without `hot` it calls `function`. With `merge` these
        partial results are merged, so that a hot key has one result, too. Without `merge` each
        partial result is a result.

        Each function takes one argument, the rows, or two: the values of the key as a tuple, and
        the rows. Values have the types that Spark's `applyInPandas` gives them, and results may be
        empty. A task holds all its rows, and one key at a time as a DataFrame. Hot keys are found
        by a count of the rows. The executors need pandas.

        Args:
            function: Maps all rows of a light key to results.
            schema: The schema of the results.
            hot: Maps a part of the rows of a hot key to results; with `merge`, to partial results,
                which may have any columns.
            merge: Maps all partial results of a hot key, in one DataFrame, to its results.

        Returns:
            The results of all keys.

        Raises:
            TypeError: `function`, `hot` or `merge` is not a function of one or two arguments.
            ValueError: `routing` is not a `Balance`, Arrow has no type for a column of the frame
                or of `schema`, or a key column has a nested type.

        >>> import pandas as pd
        >>> rows = spark.range(1000).selectExpr("if(id < 500, 'hot', string(id % 9)) AS page", "id")
        >>> def mean(key, visits):
        ...     return pd.DataFrame({"page": [key[0]], "mean": [visits["id"].mean()]})
        >>> def partial(visits):
        ...     return pd.DataFrame({"sum": [visits["id"].sum()], "count": [len(visits)]})
        >>> def merged(key, parts):
        ...     return pd.DataFrame(
        ...         {"page": [key[0]], "mean": [parts["sum"].sum() / parts["count"].sum()]})
        >>> means = group_by(rows, "page", workers=4).apply_in_pandas(
        ...     mean, "page string, mean double", hot=partial, merge=merged)
        >>> means.where("page = 'hot'").collect()
        [Row(page='hot', mean=249.5)]
        """
        given = self._promised("apply_in_pandas", function, schema)
        columns = visible(self.frame)
        computed = tuple(name for name in self.key.names if name not in columns)
        functions = KeyFunctions.of(function, hot, merge, given, self._zone, computed)
        require_plain_key(self.frame, self.key.names)
        if kind_of(self.routing) != "balance":
            raise ValueError(
                "routing: apply_in_pandas makes its own plan, in which only hot keys are split; "
                f"pass a Balance, not a {type(self.routing).__name__}"
            )
        work = functions.work(self.key.names, BUCKET, self.key.buckets)
        columns = [*columns, *computed]
        blocks = self._exchanged(columns, self._hot_keys.bucket(), only_hot_split=True)
        if functions.merge is None or not self._hot_keys.keys:
            return blocks.mapInArrow(shipped(work, WITH_PANDAS), schema)
        parts = blocks.mapInArrow(shipped(ApplyBeforeMerge(work, self.bins), WITH_PANDAS), PARTS)
        met = to_partitions(parts, self.bins, F.col("bin")).select("is_part", "block")
        merging = MergeByKey(functions.merge, self.key.names)
        return met.mapInArrow(shipped(merging, WITH_PANDAS), schema)

    @property
    def _zone(self) -> str:
        return self.frame.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"

    def _promised(self, call: str, function: object, schema: StructType | str) -> pa.Schema:
        """Return the Arrow schema of the results; refuse what cannot be called or sent."""
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        session = self.frame.sparkSession
        arrow_schema(session, call, visible_schema(self.frame))
        return arrow_schema(session, "schema", session.createDataFrame([], schema).schema)

    def _mapped(
        self,
        function: Function,
        promised: pa.Schema,
        schema: StructType | str,
        modules: Sequence[str] = ALWAYS,
    ) -> DataFrame:
        work = Map(function, promised, all_at_once=self.whole_light_keys)
        return self._exchanged(visible(self.frame)).mapInArrow(shipped(work, modules), schema)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """Return one row for each key: the key columns, then one column for each aggregator.

        The key columns have the names that `frame.groupBy` gives them.

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
        names = [aggregator.name for aggregator in aggregators]
        require_distinct_results(self.frame.sparkSession, self.key.result_names, names)
        keys = list(self.key.names)
        fields = aggregated_schema(self.frame, keys, aggregators)
        wanted = Aggregation(aggregators, keys, fields)
        read = dict.fromkeys([*keys, *(c for a in aggregators for c in a.columns)])
        # The bucket is one more key column: it decides where the states of a key are merged.
        by_bucket = Aggregation(
            aggregators, [BUCKET, *keys], fields.append(pa.field(BUCKET, pa.int32()))
        )
        results = spark_schema(wanted.result_schema).fields[len(keys) :]
        kinds = StructType([self.frame.schema[name] for name in keys] + results)
        partials = self._exchanged(list(read), self.key.bucket()).mapInArrow(
            shipped(Add(by_bucket, BUCKET, self.bins)), packing.SCHEMA
        )
        met = to_partitions(partials, self.bins, F.col("bin")).select("block")
        made = met.mapInArrow(shipped(Merge(by_bucket, BUCKET)), kinds)
        shown_as = [*self.key.result_names, *(field.name for field in results)]
        return made if made.columns == shown_as else made.toDF(*shown_as)

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
