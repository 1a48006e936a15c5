"""A grouped stream, for which users choose the work of the workers.

The sources of a stream enter; a streaming DataFrame of results leaves.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.executor.pandas_function import OnPandas, PandasFunction
from steelyard.executor.period import Period
from steelyard.executor.worker import Function, Map
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema
from steelyard.spark.columns import require_distinct_results, visible_schema
from steelyard.spark.executor_packages import (
    ALWAYS,
    STATEFUL,
    WITH_PANDAS,
    require_on_executors,
)
from steelyard.spark.shipping import by_value
from steelyard.spark.streaming.controlled_stream import ControlledStream
from steelyard.spark.streaming.definitions import definition_of
from steelyard.spark.streaming.listening import ControlLoop
from steelyard.spark.streaming.merging import is_native
from steelyard.spark.streaming.requirements import require_rocksdb
from steelyard.spark.streaming.source_stage import SourceStage
from steelyard.spark.streaming.stream_result import StreamResult
from steelyard.spark.versions.socket_leaks import warn_of_leaks


class GroupedStream(ControlledStream):
    """A stream whose rows go to workers by their keys; `group_stream` returns it.

    One grouping is for one result, because it uses its control path and its history alone.

    Args:
        source: The stage that sends the rows to workers.
        period: The time after which delegated workers send their partial states on.
        make_controller: Returns a controller, which resumes from the control path if there is one.
    """

    def __init__(
        self,
        source: SourceStage,
        period: Period,
        make_controller: Callable[[], Controller],
    ) -> None:
        super().__init__(make_controller)
        self._source, self._period = source, period

    def __repr__(self) -> str:
        workers = self._source.workers
        keys = ", ".join(map(repr, self._source.key.result_names))
        return f"GroupedStream({keys}, workers={workers.count}, placement={workers.placement})"

    def map_arrow(self, function: Function, schema: StructType | str) -> DataFrame:
        """Run a function on the rows of each worker; its tables together are the result.

        As in `group_by`, each table holds some rows of a worker, and the function must be correct
        for any split of any key. The messages of a key that is split do not keep their order.
        """
        promised, kinds = self._promised("map_arrow", function, schema)
        return self._mapped(Map(function, promised), kinds)

    def map_pandas(self, function: PandasFunction, schema: StructType | str) -> DataFrame:
        """Run a function of pandas DataFrames on the rows of each worker, like `map_arrow`.

        Values have the types that Spark's `mapInPandas` gives them. The executors need pandas.
        """
        promised, kinds = self._promised("map_pandas", function, schema)
        zone = self._source.session.conf.get("spark.sql.session.timeZone") or "UTC"
        work = Map(OnPandas(function, promised, zone), promised)
        return self._mapped(work, kinds, WITH_PANDAS)

    def apply_in_pandas(self, *_: object, **__: object) -> NoReturn:
        """Refuse work that needs all rows of a key, which a stream never has.

        Raises:
            ValueError: Always.
        """
        raise ValueError(
            "apply_in_pandas needs all rows of a key, which a stream never has: use map_pandas for "
            "work that is correct for any part of the rows, or Spark's "
            "stream.groupBy(...).applyInPandasWithState for work that keeps a state for each key"
        )

    def _mapped(self, work: Map, kinds: StructType, modules: Sequence[str] = ALWAYS) -> DataFrame:
        """Return the output of a function for which tasks import these modules."""
        is_delegated = self._source.workers.are_delegated
        self._require_packages(work, STATEFUL if is_delegated else modules)
        return self._use().mapped(work, work.schema, kinds)

    def _promised(
        self, call: str, function: object, schema: StructType | str
    ) -> tuple[pa.Schema, StructType]:
        """Return the schema of the results in Arrow and in Spark; refuse what cannot run."""
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        source = self._source
        if source.window is not None or self._period != Period():
            raise ValueError(
                f"{call} keeps no state, so `window` and `period` have no meaning: leave them "
                "out, or use aggregate"
            )
        arrow_schema(source.session, call, visible_schema(source.frame))
        kinds = source.session.createDataFrame([], schema).schema
        return arrow_schema(source.session, "schema", kinds), kinds

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """Return the results of aggregators for every key: the key columns, then one column each.

        The key columns have the names that `DataFrame.groupBy` gives them.

        With windows a column `window` comes first. Spark's own stateful aggregation merges counts,
        sums, means, minima and maxima, in any output mode. All other aggregators allow update mode
        only.
        """
        for aggregator in aggregators:
            if not isinstance(aggregator, Aggregator):
                raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        other = next((a for a in aggregators if not is_native(a)), None)
        if other is not None and self._source.window is not None:
            raise ValueError(
                f"windows need aggregators that Spark itself can merge (Count, Sum, Mean, Min, "
                f"Max), and {other.name} is not one of them; aggregate it without a window"
            )
        before = [] if self._source.window is None else ["window"]
        names = [aggregator.name for aggregator in aggregators]
        keys = [*before, *self._source.key.result_names]
        require_distinct_results(self._source.session, keys, names)
        schema = aggregated_schema(self._source.frame, self._source.key.names, aggregators)
        wanted = Aggregation(aggregators, self._source.key.names, schema)
        placement = "delegated" if self._source.workers.are_delegated else "pull"
        defined = definition_of(self._source, placement, aggregators, schema)
        if other is None:
            is_delegated = self._source.workers.are_delegated
            self._require_packages(wanted, STATEFUL if is_delegated else ALWAYS)
            return self._use(defined).merged_by_spark(wanted, schema)
        require_rocksdb(self._source.session, "states that Spark cannot merge itself are kept")
        if not self._source.workers.are_delegated:  # for delegated workers group_stream has warned
            warn_of_leaks(self._source.session)
        self._require_packages(wanted, STATEFUL)
        return self._use(defined).merged_in_shards(wanted, schema)

    def _require_packages(self, work: Map | Aggregation, modules: Sequence[str]) -> None:
        """Refuse work if an executor lacks these modules, or those that the work itself imports.

        When the query runs, Spark hides the error of a subquery, and for stateful work it reports
        only that a Python process exited.
        """
        if self._session is not None:
            return  # the error about a second result is more useful
        require_on_executors(self._source.session, modules, by_value(work, ()))

    def _use(self, definition: Definition = Definition()) -> StreamResult:  # noqa: B008  # frozen
        """Begin the only result of this grouping, and listen for its reports."""
        loop = ControlLoop(self._name, self.controller, self._make_controller, definition)
        self._begin(self._source.session, loop, definition)
        return StreamResult(self._source, self._period, definition, self._name)
