"""A stream on balanced workers: say with it what the workers do.

The sources of a stream enter; a streaming frame of results leaves.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from steelyard.aggregators import Aggregation, Aggregator
from steelyard.aggregators.describing import described
from steelyard.aggregators.layout import plain_schema
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.executor.period import Period
from steelyard.executor.worker import Function, Map
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema
from steelyard.spark.streaming.listening import ControlLoop, listen
from steelyard.spark.streaming.merging import is_native
from steelyard.spark.streaming.requirements import require_rocksdb
from steelyard.spark.streaming.source_stage import SourceStage
from steelyard.spark.streaming.stream_result import StreamResult
from steelyard.spark.versions import warn_of_leaks

if TYPE_CHECKING:
    from steelyard.control.prometheus import MetricsServer


class GroupedStream:
    """A stream whose rows will go to workers by their keys; `group_stream` makes it.

    One grouping is for one result: it keeps a control path, and what it learned, to itself.
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
        self._is_used = False

    def __repr__(self) -> str:
        workers = self._source.workers
        keys = ", ".join(map(repr, self._source.key.names))
        return f"GroupedStream({keys}, workers={workers.count}, placement={workers.placement})"

    @property
    def control(self) -> ControlStore | None:
        """The control path, if there is one."""
        return self._source.control

    def history(self) -> list[Slot]:
        """What happened, slot by slot: shares, states and latencies of workers, moves, hot keys."""
        return list(self.controller.history)

    def await_reports(self, query: StreamingQuery, seconds: float = 60.0) -> None:
        """Wait until the history has all that a query has done: Spark's listeners run later.

        It gives up after `seconds`, and leaves the history as it is.
        """
        done = [p for p in query.recentProgress if f"{self._name}_workers" in p.observedMetrics]
        end = time.monotonic() + seconds
        while done and self.controller.last_batch < done[-1].batchId and time.monotonic() < end:
            time.sleep(0.02)

    def serve_metrics(
        self, port: int, address: str = "127.0.0.1", names: Sequence[str] = ()
    ) -> "MetricsServer":
        """Tell Prometheus of the newest slot, at /metrics on this port, until it is closed.

        With another `address` it answers to that and to the machine's name. `names` are further
        host names by which Prometheus asks for it; requests for others are refused.

        It needs `prometheus-client`, which the extra `metrics` brings.
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

        As for frames that end: it gets tables with some of a worker's rows and must be right for
        any split of any key. The messages of a key that is split do not keep their order.
        """
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        source = self._source
        if source.window is not None or self._period != Period():
            raise ValueError("window and period are for aggregate: a function keeps nothing")
        arrow_schema(source.session, "map_arrow", source.frame.schema)
        kinds = source.session.createDataFrame([], schema).schema
        promised = arrow_schema(source.session, "schema", kinds)
        return self._use().mapped(Map(function, promised), promised, kinds)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """The results of these aggregators for every key: the key columns, then one column each.

        With windows a column `window` comes first. Counts, sums, means and extremes are merged by
        Spark's own stateful aggregation, in any output mode; all others in update mode only.
        """
        for aggregator in aggregators:
            if not isinstance(aggregator, Aggregator):
                raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        other = next((a for a in aggregators if not is_native(a)), None)
        if other is not None and self._source.window is not None:
            raise ValueError(
                f"windows need aggregators that Spark itself can merge (Count, Sum, Mean, Min, "
                f"Max), and {other.name} is none; aggregate it without a window"
            )
        schema = aggregated_schema(self._source.frame, self._source.key.names, aggregators)
        wanted = Aggregation(aggregators, self._source.key.names, schema)
        defined = self._definition_of(aggregators, schema)
        if other is None:
            return self._use(defined).merged_by_spark(wanted, schema)
        require_rocksdb(self._source.session, "states that Spark cannot merge itself are kept")
        if not self._source.workers.are_delegated:  # or group_stream has warned already
            warn_of_leaks(self._source.session, stacklevel=2)
        return self._use(defined).merged_in_shards(wanted, schema)

    def _definition_of(self, aggregators: Sequence[Aggregator], schema: pa.Schema) -> Definition:
        """What the state of this result in the checkpoint stands for."""
        source = self._source
        keys = [(name, source.frame.schema[name].dataType) for name in source.key.names]
        states = [state for a in aggregators for state in a.state(plain_schema(schema)).items()]
        return Definition(
            aggregators=tuple(map(described, aggregators)),
            keys=tuple(f"{name} {kind.simpleString()}" for name, kind in keys),
            window=None if source.window is None else str(source.window),
            placement="delegated" if source.workers.are_delegated else "pull",
            states=tuple(f"{name} {_type_name(kind)}" for name, kind in states),
        )

    def _use(self, definition: Definition = Definition()) -> StreamResult:  # noqa: B008  # frozen
        """Begin the one result of this grouping: from now on its reports are listened for."""
        if self._is_used:
            raise ValueError(
                "a grouping of a stream is for one result; call group_stream again for another "
                "one, with a control path of its own"
            )
        self._is_used = True
        loop = ControlLoop(self._name, self.controller, self._make_controller, definition)
        listen(self._source.session, loop)
        return StreamResult(self._source, self._period, definition, self._name)


def _type_name(kind: pa.DataType) -> str:
    """Spark's name of a type, which no setting of a session and no version of Arrow changes."""
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()
    except PySparkTypeError:  # the state of an aggregator that never leaves Python
        return str(kind)
