"""A stream that is grouped in Spark's real-time mode, for which users choose native work.

The sources of a stream enter; a streaming DataFrame of results leaves, for a real-time trigger.
"""

from collections.abc import Callable
from typing import NoReturn

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress

from steelyard.aggregators import Aggregator
from steelyard.control.catching_up import CatchingUp
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.reports import SourceReport, WorkerReport
from steelyard.spark.arrow_types import aggregated_schema
from steelyard.spark.columns import HIDDEN, named, require_frame
from steelyard.spark.resolved_columns import ResolvedColumns
from steelyard.spark.streaming.controlled_stream import ControlledStream
from steelyard.spark.streaming.definitions import definition_of
from steelyard.spark.streaming.listening import ControlLoop
from steelyard.spark.streaming.real_time_partials import (
    PARTIAL,
    refuse_decimal_means,
    require_native,
    states,
)
from steelyard.spark.streaming.real_time_stage import RealTimeStage
from steelyard.spark.streaming.requirements import require_state_partitions

_PYTHON = (
    "{} runs Python, which Spark's real-time mode does not: use transform with Spark's own "
    "expressions, or placement=sy.Pull() for any work, sy.Delegated() for work with state"
)


class RealTimeStream(ControlledStream):
    """A stream whose messages go to workers at once; `group_stream` returns it for `RealTime`.

    Start the query with `trigger(realTime="5 seconds")` or longer, and the output mode "update".
    Once a batch, Steelyard plans from the counts and the service times of the batch before.

    One grouping is for one result, because it uses its control path and its history alone.

    Args:
        stage: The stage that sends the messages to workers.
        make_controller: Returns a controller, which resumes from the control path if there is one.
    """

    def __init__(self, stage: RealTimeStage, make_controller: Callable[[], Controller]) -> None:
        super().__init__(make_controller)
        self.stage = stage

    def __repr__(self) -> str:
        workers = self.stage.workers
        keys = ", ".join(map(repr, self.stage.key.result_names))
        return f"RealTimeStream({keys}, workers={workers.count}, placement={workers.placement})"

    def plan_from(self, messages: DataFrame) -> None:
        """Plan from the latest messages before the query starts.

        A batch ends only when every worker has processed its messages. Without a plan the first
        batch may give a hot key to a slow worker, and takes as long as this worker needs. If the
        control path has a plan already, the messages are not counted.

        Args:
            messages: A batch DataFrame with the columns of the stream, such as the messages of the
                last minute: `spark.read.format("kafka")` with the option `startingTimestamp`.

        Raises:
            TypeError: `messages` is not a DataFrame.
            ValueError: `messages` is a stream, or lacks columns of the key.
        """
        require_frame("messages", messages)
        if messages.isStreaming:
            raise ValueError(
                "messages must be a batch DataFrame, as spark.read reads it; this one is a stream"
            )
        if self.controller.has_plan:
            return
        buckets = self.stage.key.buckets
        found = ResolvedColumns.of(messages, self.stage.written_key)
        bucket = found.hashed_key(buckets).bucket().alias("bucket")
        counted = found.wide.groupBy(bucket).count().collect()
        counts = np.zeros(buckets)
        for row in counted:
            counts[row["bucket"]] = row["count"]
        self.controller.plan_from(counts)

    def select(self, *columns: str | Column) -> DataFrame:
        """Compute columns of every message at its worker, like `DataFrame.select`."""

        def compute(messages: DataFrame) -> DataFrame:
            there = messages.select(*columns).columns
            hidden = [name for name in messages.columns if name.startswith(HIDDEN)]
            return messages.select(*columns, *(named(name) for name in hidden if name not in there))

        return self._worked("select", compute)

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Run steps of Spark on the messages of each worker, like `DataFrame.transform`.

        The steps may compute columns, filter messages, and join them with a broadcast frame. They
        must keep the columns that they do not change; select columns of the result instead.

        Args:
            function: A function from the frame of messages to a frame.

        Raises:
            TypeError: `function` is not callable, or returns no DataFrame.
            ValueError: The function drops columns.
        """
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        return self._worked("transform", function)

    def map_arrow(self, *_: object, **__: object) -> NoReturn:
        """Refuse work in Python.

        Raises:
            ValueError: Always.
        """
        raise ValueError(_PYTHON.format("map_arrow"))

    def map_pandas(self, *_: object, **__: object) -> NoReturn:
        """Refuse work in Python.

        Raises:
            ValueError: Always.
        """
        raise ValueError(_PYTHON.format("map_pandas"))

    def apply_in_pandas(self, *_: object, **__: object) -> NoReturn:
        """Refuse work in Python.

        Raises:
            ValueError: Always.
        """
        raise ValueError(_PYTHON.format("apply_in_pandas"))

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """Return partial results of every key: the key columns and the column `partial`.

        For every message a row leaves with the new partial result of its key at its worker. Rows of
        all workers together give the results: `merge_partials` merges them, in a batch job or in
        another stream. Allowed are Count, Sum, Min, Max and Mean.

        After a restart rows may leave again. They are partial results of the same messages at the
        same workers, so merged results stay exact.
        """
        require_native(aggregators)
        stage = self.stage
        schema = aggregated_schema(stage.frame, stage.key.names, aggregators)
        refuse_decimal_means(aggregators, stage.frame.schema)
        require_state_partitions(stage.session, stage.workers.count)
        if PARTIAL in stage.key.result_names:
            raise ValueError(
                f"key: the name {PARTIAL!r} is reserved for partial results; rename it"
            )
        definition = definition_of(stage, "real-time", aggregators, schema)
        loop = self._loop(definition)
        routed = stage.routed(loop.sources, definition)
        self._begin(stage.session, loop, definition)
        return stage.counted(loop.workers, routed, PARTIAL, states(aggregators))

    def _worked(self, call: str, work: Callable[[DataFrame], DataFrame]) -> DataFrame:
        stage = self.stage
        definition = Definition(placement="real-time")
        loop = self._loop(definition)
        begun = stage.begun(stage.routed(loop.sources, definition))
        done = work(begun)
        require_frame(f"{call}: the result of the function", done)
        if not {name for name in begun.columns if name.startswith(HIDDEN)} <= set(done.columns):
            raise ValueError(
                f"{call}: the function must keep all columns, as withColumns, where and join do; "
                "select columns of its result instead"
            )
        self._begin(stage.session, loop, definition)
        return stage.ended(loop.workers, done)

    def _loop(self, definition: Definition) -> "RealTimeLoop":
        return RealTimeLoop(
            self._name, self.controller, self._make_controller, definition, self.stage
        )


class RealTimeLoop(ControlLoop):
    """The link from the sums that a real-time query observes to its controller.

    Args:
        name: Prefix of the names of the observed metrics.
        controller: The controller of the query; only a weak reference is kept.
        make: Returns a controller that resumes from the control path.
        definition: The definition of the query.
        stage: The stage whose columns are observed.
    """

    def __init__(
        self,
        name: str,
        controller: Controller,
        make: Callable[[], Controller],
        definition: Definition,
        stage: RealTimeStage,
    ) -> None:
        super().__init__(name, controller, make, definition)
        self.stage = stage
        self._catching_up = CatchingUp(stage.control)

    def finish_batch(self, progress: StreamingQueryProgress) -> None:
        """Use the reports of a finished batch, and the offsets that the query has reached."""
        super().finish_batch(progress)
        self._catching_up.finish_batch(
            str(progress.id),
            str(progress.runId),
            [source.endOffset for source in progress.sources],
            [source.latestOffset for source in progress.sources],
        )

    def _reports(
        self, progress: StreamingQueryProgress
    ) -> tuple[list[SourceReport], list[WorkerReport]]:
        observed = progress.observedMetrics
        sums = self.stage.sums(
            progress.batchId,
            progress.batchDuration / 1000,
            observed.get(self.sources),
            observed.get(self.workers),
        )
        return [sums.source_report()], sums.worker_reports()
