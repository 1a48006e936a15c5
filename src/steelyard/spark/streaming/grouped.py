"""A stream on balanced workers: how the parts are put together.

A streaming frame and its key enter; a streaming frame of results leaves.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from steelyard.aggregators import Aggregation, Aggregator, Max
from steelyard.control.controller import Controller
from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.rounds import capacities_of_tasks
from steelyard.routing_plan import RoutingPlan
from steelyard.spark import packing
from steelyard.spark.columns import HIDDEN, Key, named, salt_of
from steelyard.spark.grouped import Grouped
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.scans import repeats_its_order
from steelyard.spark.shipping import shipped
from steelyard.spark.streaming import sources
from steelyard.spark.streaming import workers as at_work
from steelyard.spark.streaming.listening import ControlLoop, listen
from steelyard.spark.streaming.merging import is_native, merged, states_of
from steelyard.spark.streaming.processors import stateful
from steelyard.spark.streaming.settings import TIME, Windows, require_rocksdb
from steelyard.spark.working import Add, Function, Map, Worker

if TYPE_CHECKING:
    from steelyard.control.metrics import MetricsServer
    from steelyard.schemes import Scheme

_BUCKET, _SALT, _HASH = f"{HIDDEN}bucket", f"{HIDDEN}salt", f"{HIDDEN}hash"
_WEIGHT, _ARRIVED = f"{HIDDEN}weight", f"{HIDDEN}arrived"
_PANE, _SHARD, _VERSION = f"{HIDDEN}pane", f"{HIDDEN}shard", f"{HIDDEN}version"

_SHARDS = 64
"""Where partial states meet that Spark cannot merge; part of the checkpoint: never change it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamGrouped(Grouped):
    """A stream whose rows will go to workers by their keys; say with it what the workers do.

    One grouping is for one result: it keeps a control path, and what it learned, to itself.
    """

    frame: DataFrame = field(repr=False)
    key: Key
    workers: int
    virtual_workers: int
    delegated: bool
    control: ControlStore | None
    controller: Controller = field(repr=False)
    plan: RoutingPlan | None = field(repr=False)
    scheme: "Scheme | None"
    salts: tuple[str, ...]
    weight: str | None
    epsilon: float
    period: at_work.Period
    windows: Windows | None
    arrived: str | None
    _name: str = field(default_factory=lambda: f"steelyard_{uuid.uuid4().hex}", repr=False)
    _loops: list[ControlLoop] = field(default_factory=list, repr=False)

    @property
    def bins(self) -> int:
        """Where rows can go: workers that stay, or tasks."""
        return self.workers if self.delegated else self.workers * self.virtual_workers

    def history(self) -> list[Slot]:
        """What happened, slot by slot: shares, states and latencies of workers, moves, hot keys."""
        return list(self.controller.history)

    def await_reports(self, query: StreamingQuery, seconds: float = 60.0) -> None:
        """Wait until the history knows of all that a query has done, which Spark tells a bit later.

        After so many seconds it is taken as it is.
        """
        told = [p for p in query.recentProgress if f"{self._name}_workers" in p.observedMetrics]
        end = time.monotonic() + seconds
        while told and self.controller.last_batch < told[-1].batchId and time.monotonic() < end:
            time.sleep(0.02)

    def serve_metrics(self, port: int, address: str = "127.0.0.1") -> "MetricsServer":
        """Tell Prometheus of the newest slot, at /metrics on this port, until it is closed.

        It needs `prometheus-client`, which the extra `metrics` brings.
        """
        try:
            from steelyard.control.metrics import MetricsServer
        except ModuleNotFoundError as error:
            raise ImportError(
                "metrics need prometheus-client: install Steelyard with its extra 'metrics'"
            ) from error
        return MetricsServer(self.history, port, address)

    def map_arrow(self, function: Function, schema: StructType | str) -> DataFrame:
        """Run a function on the rows of each worker; its tables together are the result.

        As for frames that end: it gets tables with some of a worker's rows and must be right for
        any split of any key. The messages of a key that is split do not keep their order.
        """
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        if self.windows is not None or self.period != at_work.Period():
            raise ValueError("window and period are for aggregate: a function keeps nothing")
        empty = self._session.createDataFrame([], schema)
        promised = empty.toArrow().schema
        numbered = pa.schema([(f"c{i}", kind) for i, kind in enumerate(promised.types)])
        watch = self._watch(self.frame.columns)
        if not self.delegated:
            made = self._pulled(self.frame.columns, Map(function, promised), promised, watch)
            return made.select(*map(named, promised.names))
        staying = at_work.Staying(Map(function, promised), watch)
        blocks = self._stay(self.frame.columns, staying, self._blocks)
        return self._unpacked(blocks, numbered, empty.schema).toDF(*promised.names)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """The results of these aggregators for every key: the key columns, then one column each.

        With windows a column `window` comes first. Counts, sums, means and extremes are merged by
        Spark's own stateful aggregation, in any output mode; all others in update mode only.
        """
        for aggregator in aggregators:
            if not isinstance(aggregator, Aggregator):
                raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        schema = self._session.createDataFrame([], self.frame.schema).toArrow().schema
        wanted = Aggregation(aggregators, self.key.names, schema)
        if all(map(is_native, aggregators)):
            return self._natively(aggregators, wanted, schema)
        if self.windows is not None:
            other = next(a for a in aggregators if not is_native(a))
            raise ValueError(
                f"windows need aggregators that Spark itself can merge (Count, Sum, Mean, Min, "
                f"Max), and {other.name} is none; aggregate it without a window"
            )
        return self._in_shards(aggregators, wanted, schema)

    # Two ways for partial states to meet.

    def _natively(
        self, aggregators: Sequence[Aggregator], wanted: Aggregation, schema: pa.Schema
    ) -> DataFrame:
        """In Spark's own aggregation: partial states are rows."""
        keys, more = list(self.key.names), []
        if self.windows is not None:
            schema = schema.append(pa.field(_PANE, pa.int64())).append(pa.field(TIME, pa.int64()))
            keys.append(_PANE)
            more.append(Max(TIME))
        everything = [*aggregators, *more]
        aggregation = Aggregation(everything, keys, schema)
        read = list(dict.fromkeys([*keys, *(c for a in everything for c in a.columns)]))
        partials = at_work.Partials(aggregation)
        kinds = self._spark_schema(partials.schema)
        watch = self._watch(read)
        if self.delegated:
            periodic = at_work.Periodic(
                aggregation, self.period, self.workers, shard=None, watch=watch
            )
            rows = self._stay(read, periodic, kinds)
        else:
            rows = self._pulled(read, partials, partials.schema, watch, kinds)
        states = list(rows.schema.fields)
        own = [states.pop(0) for _ in keys][: len(self.key.names)]
        groups = [F.col(c.name).alias(name) for c, name in zip(own, self.key.names, strict=True)]
        promised = self._spark_schema(wanted.result_schema)
        results = [
            merged(aggregator, states_of(aggregator, schema, states), of.dataType)
            for aggregator, of in zip(
                aggregators, promised.fields[len(self.key.names) :], strict=True
            )
        ]
        if self.windows is not None:
            (latest,) = states
            rows = rows.withColumn(TIME, F.timestamp_micros(latest.name))
            if self.windows.watermark is not None:
                rows = rows.withWatermark(TIME, self.windows.watermark)
            groups = [self.windows.column(), *groups]
        return rows.groupBy(*groups).agg(*results)

    def _in_shards(
        self, aggregators: Sequence[Aggregator], wanted: Aggregation, schema: pa.Schema
    ) -> DataFrame:
        """In Python: the states of some keys are one value of Spark's state store."""
        require_rocksdb(self._session, "states that Spark cannot merge itself are kept")
        keys = list(self.key.names)
        schema = schema.append(pa.field(_SHARD, pa.int32()))
        aggregation = Aggregation(aggregators, [_SHARD, *keys], schema)
        read = list(dict.fromkeys([_SHARD, *keys, *(c for a in aggregators for c in a.columns)]))
        watch = self._watch(read)
        if self.delegated:
            periodic = at_work.Periodic(
                aggregation, self.period, self.workers, shard=_SHARD, watch=watch
            )
            blocks = self._stay(read, periodic, self._blocks)
        else:
            add = Add(aggregation, _SHARD, _SHARDS)
            blocks = self._pulled(read, add, at_work.BLOCKS, watch, self._blocks)
        merging = stateful(at_work.Merging(aggregation, (_SHARD,)))
        met = (
            blocks.select("bin", "block")
            .groupBy("bin")
            .transformWithStateInPandas(merging, _with_report(self._blocks), "Update", "None")
        )
        result = pa.schema([(f"c{i}", kind) for i, kind in enumerate(wanted.result_schema.types)])
        promised = self._spark_schema(wanted.result_schema)
        kinds = StructType(
            [self.frame.schema[name] for name in keys] + promised.fields[len(keys) :]
        )
        return self._unpacked(met, result, kinds).toDF(*wanted.result_schema.names)

    # From rows to workers and their reports.

    def _pulled(
        self,
        columns: Sequence[str],
        worker: Worker,
        schema: pa.Schema,
        watch: at_work.Stopwatch,
        kinds: StructType | None = None,
    ) -> DataFrame:
        """Every bin is a task, and whoever is free takes the next."""
        kinds = kinds if kinds is not None else self._spark_schema(schema)
        sent = self._sent(columns, called=0).select("bin", "block")
        at_workers = sent.repartitionById(self.bins, F.col("bin")).select("block")
        pulled = shipped(at_work.Pulled(worker, schema, watch))
        return self._reported(at_workers.mapInArrow(pulled, _with_report(kinds)))

    def _stay(self, columns: Sequence[str], worker: object, kinds: StructType) -> DataFrame:
        """Every worker is a partition of Spark's state, and stays where that is."""
        sent = self._sent(columns, called=self.workers)
        label = F.get(F.array(*map(F.lit, _labels(self._session, self.workers))), F.col("bin"))
        labelled = sent.select(label.alias("label"), "bin", "block", "latest")
        processor = stateful(worker)  # type: ignore[arg-type]
        made = labelled.groupBy("label").transformWithStateInPandas(
            processor, _with_report(kinds), "Update", "None"
        )
        return self._reported(made)

    def _reported(self, made: DataFrame) -> DataFrame:
        """Take the reports out: they reach the driver with the completion of tasks."""
        report = F.col(at_work.REPORT)
        observed = made.observe(f"{self._name}_workers", F.collect_list(report).alias("reports"))
        self._listen()
        return observed.where(report.isNull()).drop(at_work.REPORT)

    def _unpacked(self, blocks: DataFrame, schema: pa.Schema, kinds: StructType) -> DataFrame:
        fields = [StructField(f"c{i}", f.dataType) for i, f in enumerate(kinds.fields)]
        unpack = shipped(at_work.Unpacked(schema))
        return blocks.select("block").mapInArrow(unpack, StructType(fields))

    def _sent(self, columns: Sequence[str], called: int) -> DataFrame:
        """(bin, block) rows, and their counts on the way to the driver."""
        frame, destinations = self._routed()
        hidden = [_BUCKET, *destinations.columns]
        hidden += [name for name in (_ARRIVED, _WEIGHT) if name in frame.columns]
        kept = list(dict.fromkeys([*self.key.names, *columns, *hidden]))
        if self.period.micros:
            kept = list(dict.fromkeys([*kept, TIME]))
        needed = {*columns, _BUCKET, _ARRIVED}
        packer = sources.StreamPacker(
            destinations=destinations,
            names=tuple(kept),
            keys=self.key.names,
            bucket=_BUCKET,
            weight=_WEIGHT if self.weight is not None else None,
            buckets=self.key.buckets,
            dropped=tuple(name for name in kept if name not in needed),
            called=called,
            time=TIME if self.period.micros else None,
        )
        numbered = frame.select(*map(named, kept)).toDF(*(f"c{i}" for i in range(len(kept))))
        blocks = numbered.mapInArrow(shipped(packer), sources.SCHEMA)
        reports = F.collect_list(F.col("report")).alias("reports")
        return blocks.observe(f"{self._name}_sources", reports)

    def _routed(self) -> tuple[DataFrame, packing.Destinations]:
        """The frame with what a source task needs to know, and how it decides."""
        frame = self.frame.withColumn(_BUCKET, self.key.bucket())
        shard = F.pmod(self.key.hashed(), F.lit(_SHARDS)).cast("int")
        frame = frame.withColumn(_SHARD, shard)
        if self.salts:
            frame = frame.withColumn(_SALT, salt_of(self.salts))
        if self.weight is not None:
            frame = frame.withColumn(_WEIGHT, named(self.weight).cast("double"))
        if self.arrived is not None:
            frame = frame.withColumn(_ARRIVED, F.unix_micros(named(self.arrived)))
        if self.windows is not None:
            frame = frame.withColumn(TIME, F.unix_micros(named(self.windows.time)))
            pane = F.lit(self.windows.pane)
            frame = frame.withColumn(_PANE, F.col(TIME) - F.pmod(F.col(TIME), pane))
        if self.plan is not None:
            routed = with_bin(frame, self.plan, F.col(_BUCKET), F.col(_SALT))
            return routed, packing.Decided(BIN)
        virtual = self.workers * self.virtual_workers
        scheme: packing.Destinations | None = None
        if self.scheme is not None:
            frame = frame.withColumn(_HASH, self.key.hashed())
            scheme = packing.RoutedHere(_HASH, self.scheme, virtual)
        sizes = None
        if not self.delegated:
            sizes = capacities_of_tasks(self.workers, self.virtual_workers)
        here: packing.Destinations = sources.FirstChoice(_BUCKET, virtual, self.key.buckets, sizes)
        if repeats_its_order(self.frame):
            here = packing.PlannedHere(
                bucket=_BUCKET,
                weight=_WEIGHT if self.weight is not None else None,
                bins=virtual,
                epsilon=self.epsilon,
                buckets=self.key.buckets,
                capacities=sizes,
            )
        if self.control is None:
            return frame, scheme or here
        if not self.control.can_pin:
            # Spark runs a subquery once for each micro-batch, whatever becomes of its tasks.
            ask = shipped(sources.Asked(self.control.address))
            asked = self._session.range(0, 1, 1, 1).mapInArrow(ask, "number long")
            frame = frame.withColumn(_VERSION, asked.scalar())
        return frame, sources.Controlled(
            path=self.control.address,
            bucket=_BUCKET,
            salt=_SALT if self.salts else None,
            bins=virtual,
            buckets=self.key.buckets,
            workers=self.bins,
            until_planned=here,
            scheme=scheme,
            asked=None if self.control.can_pin else _VERSION,
        )

    def _watch(self, columns: Sequence[str]) -> at_work.Stopwatch:
        arrived = _ARRIVED if self.arrived is not None else None
        tasks = 1 if self.delegated else self.virtual_workers
        return at_work.Stopwatch(_BUCKET, arrived, tuple(columns), self.workers, tasks)

    def _listen(self) -> None:
        if self._loops:
            raise ValueError(
                "a grouping of a stream is for one result; call group_by again for another one, "
                "with a control path of its own"
            )
        loop = ControlLoop(self._name, self.controller, self.control)
        self._loops.append(loop)
        listen(self._session, loop)

    @property
    def _session(self) -> SparkSession:
        return self.frame.sparkSession

    @property
    def _blocks(self) -> StructType:
        return self._spark_schema(at_work.BLOCKS)

    def _spark_schema(self, schema: pa.Schema) -> StructType:
        """What Spark makes of Arrow's types; times without a zone stay so."""
        return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _with_report(kinds: StructType) -> StructType:
    fields = [StructField(field.name, field.dataType) for field in kinds.fields]
    return StructType([*fields, StructField(at_work.REPORT, StringType())])


def _labels(session: SparkSession, workers: int) -> list[int]:
    """For every worker the smallest number that Spark hashes to the partition of that number."""
    places = F.pmod(F.hash("id"), F.lit(workers)).alias("place")
    numbers = session.range(0, 64 * workers + 64, 1, 1).select(F.col("id").cast("int"))
    found = numbers.groupBy(places).agg(F.min("id").alias("label")).collect()
    labels = {row["place"]: int(row["label"]) for row in found}
    return [labels[worker] for worker in range(workers)]
