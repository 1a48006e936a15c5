"""A grouped stream, for which users choose the work of the workers.

The sources of a stream enter; a streaming DataFrame of results leaves.
"""

import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.aggregators.describing import described
from steelyard.aggregators.layout import plain_schema
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.history import History
from steelyard.control.store import ControlStore
from steelyard.executor.pandas_function import OnPandas, PandasFunction
from steelyard.executor.period import Period
from steelyard.executor.worker import Function, Map
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema
from steelyard.spark.columns import (
    require_distinct_results,
    require_frame,
    shown,
    visible_schema,
)
from steelyard.spark.executor_packages import (
    ALWAYS,
    STATEFUL,
    WITH_PANDAS,
    require_on_executors,
)
from steelyard.spark.shipping import by_value
from steelyard.spark.streaming.checkpoints import require_same_definition
from steelyard.spark.streaming.listening import ControlLoop, listen
from steelyard.spark.streaming.merging import is_native
from steelyard.spark.streaming.requirements import require_rocksdb
from steelyard.spark.streaming.source_stage import SourceStage
from steelyard.spark.streaming.stream_result import StreamResult
from steelyard.spark.versions.socket_leaks import warn_of_leaks

if TYPE_CHECKING:
    from steelyard.control.prometheus import MetricsServer


class GroupedStream:
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
        self.controller = make_controller()
        self._source, self._period = source, period
        self._make_controller = make_controller
        self._name = f"steelyard_{uuid.uuid4().hex}"
        self._definition: Definition | None = None

    def __repr__(self) -> str:
        workers = self._source.workers
        keys = ", ".join(map(repr, self._source.key.result_names))
        return f"GroupedStream({keys}, workers={workers.count}, placement={workers.placement})"

    @property
    def control(self) -> ControlStore | None:
        """The control path, if there is one."""
        return self._source.control

    def history(self) -> History:
        """Return the slots so far: shares, states and latencies of workers, moves, hot keys.

        The result is a list of slots, which a terminal or a notebook shows as a table.
        """
        return History(self.controller.history)

    def waiting(self) -> int:
        """Return the number of partial results that wait with delegated workers.

        These are results of keys, or of keys in windows, since the last finished micro-batch that
        Spark has reported. They are in the checkpoint. They leave at the end of their period, with
        a later micro-batch, which needs new messages.
        """
        return self.controller.waiting

    def await_reports(self, query: StreamingQuery, seconds: float = 60.0) -> None:
        """Wait until the history includes all finished micro-batches of a query.

        Spark calls listeners some time after a micro-batch. After `seconds` this returns even if
        the history is not complete.
        """
        done = [p for p in query.recentProgress if f"{self._name}_workers" in p.observedMetrics]
        end = time.monotonic() + seconds
        while done and self.controller.last_batch < done[-1].batchId and time.monotonic() < end:
            time.sleep(0.02)

    def serve_metrics(
        self, port: int, address: str = "127.0.0.1", names: Sequence[str] = ()
    ) -> "MetricsServer":
        """Serve the newest slot to Prometheus at /metrics, until the server is closed.

        The server accepts requests for its address and for `names`, and refuses all others. With an
        `address` other than the default it also accepts the name of the machine. It needs
        `prometheus-client`, which the extra `metrics` installs.

        Args:
            port: The port to listen on.
            address: The address to listen on.
            names: Further host names that Prometheus may use in its requests.

        Returns:
            The running server.

        Raises:
            ImportError: `prometheus-client` is not installed.
        """
        try:
            from steelyard.control.prometheus import MetricsServer
        except ModuleNotFoundError as error:
            raise ImportError(
                "metrics need prometheus-client: install Steelyard with its extra 'metrics'"
            ) from error
        return MetricsServer(self.history, port, address, names)

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
        defined = self._definition_of(aggregators, schema)
        if other is None:
            is_delegated = self._source.workers.are_delegated
            self._require_packages(wanted, STATEFUL if is_delegated else ALWAYS)
            return self._use(defined).merged_by_spark(wanted, schema)
        require_rocksdb(self._source.session, "states that Spark cannot merge itself are kept")
        if not self._source.workers.are_delegated:  # for delegated workers group_stream has warned
            warn_of_leaks(self._source.session)
        self._require_packages(wanted, STATEFUL)
        return self._use(defined).merged_in_shards(wanted, schema)

    def write_stream(
        self, results: DataFrame, checkpoint: str | os.PathLike[str]
    ) -> DataStreamWriter:
        """Return Spark's writer of the results, with a checkpoint that belongs to this query.

        It is `results.writeStream.option("checkpointLocation", checkpoint)`, and raises an error
        before the query starts if the checkpoint is of a query with another key, aggregators,
        window or placement. `results` may also be a frame that is made from the result of this
        grouping.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: The checkpoint is of a query with another definition, or this grouping has
                no result yet.
        """
        require_frame("results", results)
        if not isinstance(checkpoint, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or an address, got {checkpoint!r}")
        if self._definition is None:
            raise ValueError(
                "write_stream writes the result of this grouping: call aggregate or map_arrow first"
            )
        folder = os.fspath(checkpoint)
        require_same_definition(self._source.session, folder, self._definition)
        return results.writeStream.option("checkpointLocation", folder)

    def _definition_of(self, aggregators: Sequence[Aggregator], schema: pa.Schema) -> Definition:
        """Return the settings on which the state of this result depends."""
        source = self._source
        keys = [(name, source.frame.schema[name].dataType) for name in source.key.names]
        states = [state for a in aggregators for state in a.state(plain_schema(schema)).items()]
        return Definition(
            aggregators=tuple(map(described, aggregators)),
            keys=tuple(f"{shown(name)} {kind.simpleString()}" for name, kind in keys),
            window=None if source.window is None else str(source.window),
            placement="delegated" if source.workers.are_delegated else "pull",
            states=tuple(f"{name} {_type_name(kind)}" for name, kind in states),
        )

    def _require_packages(self, work: Map | Aggregation, modules: Sequence[str]) -> None:
        """Refuse work if an executor lacks these modules, or those that the work itself imports.

        When the query runs, Spark hides the error of a subquery, and for stateful work it reports
        only that a Python process exited.
        """
        if self._definition is not None:
            return  # the error about a second result is more useful
        require_on_executors(self._source.session, modules, by_value(work, ()))

    def _use(self, definition: Definition = Definition()) -> StreamResult:  # noqa: B008  # frozen
        """Begin the only result of this grouping, and listen for its reports."""
        if self._definition is not None:
            raise ValueError(
                "a grouping of a stream is for one result; call group_stream again for another "
                "result, with a control path of its own"
            )
        self._definition = definition
        loop = ControlLoop(self._name, self.controller, self._make_controller, definition)
        listen(self._source.session, loop)
        return StreamResult(self._source, self._period, definition, self._name)


def _type_name(kind: pa.DataType) -> str:
    """Return Spark's name of a type, which does not depend on the session or on Arrow's version."""
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()
    except PySparkTypeError:  # the state of an aggregator that never leaves Python
        return str(kind)
