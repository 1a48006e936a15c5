"""One query from its sources to its results.

A source stage and the work of the workers enter; a streaming DataFrame of results leaves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from steelyard.aggregators import Aggregation, Max
from steelyard.control.definition import Definition
from steelyard.executor.merging_worker import Merging
from steelyard.executor.period import Period
from steelyard.executor.periodic_worker import MOST_HELD, Periodic
from steelyard.executor.pulled_worker import Partials
from steelyard.executor.stateful_worker import DelegatedMap, StatefulWorker
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker import Add, Map, Worker
from steelyard.executor.worker_output import BLOCKS, REPORT
from steelyard.spark.arrow_types import spark_schema
from steelyard.spark.columns import named, visible
from steelyard.spark.streaming import worker_stage
from steelyard.spark.streaming.hidden_columns import (
    ARRIVED,
    BUCKET,
    PANE,
    SHARD,
    SHARDS,
    TIME,
)
from steelyard.spark.streaming.merging import merged, states_of
from steelyard.spark.streaming.source_stage import SourceStage
from steelyard.spark.streaming.state_schema import definition_columns


@dataclass(frozen=True, eq=False)
class StreamResult:
    """The stages of one query, connected."""

    source: SourceStage
    period: Period
    definition: Definition
    name: str
    """Prefix of the names of the observed metrics, which carry reports to the driver."""

    def mapped(self, work: Map, promised: pa.Schema, kinds: StructType) -> DataFrame:
        """Return the output of a function of the user."""
        columns = visible(self.source.frame)
        stopwatch = self._stopwatch(columns)
        if not self.source.workers.are_delegated:
            made = self._in_any_task(columns, work, promised, kinds)
            return made.select(*map(named, promised.names))
        staying = DelegatedMap(work, stopwatch)
        blocks = self._where_state_is(columns, staying, worker_stage.BLOCKS)
        return worker_stage.unpacked(blocks, promised.types, kinds.fields)

    def merged_by_spark(self, wanted: Aggregation, schema: pa.Schema) -> DataFrame:
        """Merge partial states, one row each, in Spark's own aggregation."""
        window = self.source.window
        keys, everything = list(wanted.by), list(wanted.aggregators)
        if window is not None:
            schema = schema.append(pa.field(PANE, pa.int64())).append(pa.field(TIME, pa.int64()))
            keys.append(PANE)
            everything.append(Max(TIME))
        aggregation = Aggregation(everything, keys, schema)
        definition = definition_columns(self.definition, F.col(REPORT))
        rows = self._partial_rows(aggregation).withColumns(definition).drop(REPORT)
        states = [field for field in rows.schema.fields if field.name not in definition]
        own = [states.pop(0) for _ in keys]
        groups = [
            worker_stage.as_field(column.name, key)
            for column, key in zip(own, self._keys, strict=False)
        ]
        columns = [
            merged(aggregator, states_of(aggregator, schema, states), of.dataType)
            for aggregator, of in zip(wanted.aggregators, _results(wanted), strict=True)
        ]
        if window is not None:
            (latest,) = states
            rows = rows.withColumn(TIME, F.timestamp_micros(latest.name))
            if window.watermark is not None:
                rows = rows.withWatermark(TIME, window.watermark)
            groups = [F.window(F.col(TIME), window.length, window.slide), *groups]
        hidden = map(named, definition)
        return rows.groupBy(*groups, *hidden).agg(*columns).drop(*definition)

    def merged_in_shards(self, wanted: Aggregation, schema: pa.Schema) -> DataFrame:
        """Merge in Python; the states of all keys of a shard are one value of the state store."""
        with_shard = schema.append(pa.field(SHARD, pa.int32()))
        aggregation = Aggregation(wanted.aggregators, [SHARD, *wanted.by], with_shard)
        read = _columns_of(aggregation)
        if self.source.workers.are_delegated:
            periodic = self._periodic(aggregation, read, shard=SHARD)
            blocks = self._where_state_is(read, periodic, worker_stage.BLOCKS)
        else:
            add = Add(aggregation, SHARD, SHARDS)
            blocks = self._in_any_task(read, add, BLOCKS, worker_stage.BLOCKS)
        merging = Merging(aggregation, (SHARD,), self.definition)
        results = worker_stage.merged_by_bin(blocks, merging)
        fields = [*self._keys, *_results(wanted)]
        return worker_stage.unpacked(results, wanted.result_schema.types, fields)

    def _partial_rows(self, aggregation: Aggregation) -> DataFrame:
        """Return partial states as rows: keys, one column for each value, the column of reports."""
        read = _columns_of(aggregation)
        partials = Partials(aggregation)
        kinds = spark_schema(partials.schema, self._keys)
        if self.source.workers.are_delegated:
            return self._where_state_is(read, self._periodic(aggregation, read, None), kinds)
        return self._in_any_task(read, partials, partials.schema, kinds)

    @property
    def _keys(self) -> list[StructField]:
        """The key columns of the result; those of the stages before have their own names."""
        key, schema = self.source.key, self.source.frame.schema
        own = (schema[name] for name in key.names)
        return [
            StructField(result, field.dataType, field.nullable, field.metadata)
            for result, field in zip(key.result_names, own, strict=True)
        ]

    def _periodic(
        self, aggregation: Aggregation, columns: Sequence[str], shard: str | None
    ) -> Periodic:
        window = self.source.window
        moves_watermark = window is not None and window.watermark is not None
        return Periodic(
            aggregation,
            self.period,
            self.source.workers.count,
            shard=shard,
            watch=self._stopwatch(columns),
            definition=self.definition,
            most_held=inf if moves_watermark else MOST_HELD,
        )

    def _in_any_task(
        self, columns: Sequence[str], worker: Worker, schema: pa.Schema, kinds: StructType
    ) -> DataFrame:
        work = worker, schema, self._stopwatch(columns)
        sent = self._sent(columns)
        return self._reported(worker_stage.in_any_task(sent, self.source.workers.bins, work, kinds))

    def _where_state_is(
        self, columns: Sequence[str], worker: StatefulWorker, kinds: StructType
    ) -> DataFrame:
        count = self.source.workers.count
        return self._reported(
            worker_stage.where_state_is(self._sent(columns), count, worker, kinds)
        )

    def _sent(self, columns: Sequence[str]) -> DataFrame:
        """Return the blocks for workers, and observe the reports of sources."""
        blocks = self.source.blocks(columns, self.definition)
        reports = F.collect_list(F.col("report")).alias("reports")
        return blocks.observe(f"{self.name}_sources", reports)

    def _reported(self, made: DataFrame) -> DataFrame:
        """Observe the reports of workers, and remove their rows.

        Observed metrics reach the driver with the completion of tasks.
        """
        report = F.col(REPORT)
        observed = made.observe(f"{self.name}_workers", F.collect_list(report).alias("reports"))
        return observed.where(report.isNull())

    def _stopwatch(self, columns: Sequence[str]) -> Stopwatch:
        workers = self.source.workers
        keys = tuple(name for name in self.source.key.names if name in columns)
        arrived = ARRIVED if self.source.arrived is not None else None
        tasks = 1 if workers.are_delegated else workers.each
        return Stopwatch(
            BUCKET, arrived, tuple(columns), keys, workers.count, tasks, self.source.reported
        )


def _results(wanted: Aggregation) -> list[StructField]:
    """Return the columns after the keys."""
    return list(spark_schema(wanted.result_schema).fields[len(wanted.by) :])


def _columns_of(aggregation: Aggregation) -> list[str]:
    """Return the columns that an aggregation reads, each once."""
    read = (column for aggregator in aggregation.aggregators for column in aggregator.columns)
    return list(dict.fromkeys([*aggregation.by, *read]))
