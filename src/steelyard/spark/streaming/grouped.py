"""A stream on balanced workers: how the parts are put together.

A streaming frame and its key enter; a streaming frame of results leaves.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from steelyard.aggregators import Aggregation, Aggregator, Max
from steelyard.aggregators.describing import described
from steelyard.aggregators.layout import plain_schema
from steelyard.control.controller import Controller
from steelyard.control.definition import Definition
from steelyard.control.history import Slot
from steelyard.control.store import ControlStore
from steelyard.executor import packing, stream_source
from steelyard.executor.merging_worker import Merging
from steelyard.executor.period import Period
from steelyard.executor.periodic_worker import MOST_HELD, Periodic
from steelyard.executor.pulled_worker import Partials, Pulled
from steelyard.executor.stateful_worker import StatefulWorker, Staying
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker import Add, Function, Map, Worker
from steelyard.executor.worker_output import BLOCKS, REPORT, Unpacked
from steelyard.plans import RoutingPlan
from steelyard.plans.task_sizes import capacities_of_tasks
from steelyard.spark.arrow_types import aggregated_schema, arrow_schema, spark_schema
from steelyard.spark.columns import HIDDEN, Key, named, salt_of
from steelyard.spark.grouped import Grouped
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.shipping import shipped
from steelyard.spark.streaming.listening import ControlLoop, listen
from steelyard.spark.streaming.merging import is_native, merged, states_of
from steelyard.spark.streaming.processors import stateful
from steelyard.spark.streaming.settings import TIME, WATERMARK, Windows, require_rocksdb
from steelyard.spark.versions import warn_of_leaks

if TYPE_CHECKING:
    from steelyard.control.prometheus import MetricsServer
    from steelyard.schemes import Scheme

_BUCKET, _SALT, _HASH = f"{HIDDEN}bucket", f"{HIDDEN}salt", f"{HIDDEN}hash"
_WEIGHT, _ARRIVED = f"{HIDDEN}weight", f"{HIDDEN}arrived"
_PANE, _SHARD, _PIN = f"{HIDDEN}pane", f"{HIDDEN}shard", f"{HIDDEN}pin"

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
    make_controller: Callable[[], Controller] = field(repr=False)
    plan: RoutingPlan | None = field(repr=False)
    scheme: "Scheme | None"
    salts: tuple[str, ...] | None
    """What tells messages of a key apart; None: their place in a task."""
    in_order: bool
    """A task that is run again gets the same messages in the same order."""
    weight: str | None
    epsilon: float
    period: Period
    windows: Windows | None
    arrived: str | None
    definition: Definition = Definition()  # noqa: RUF009  # frozen
    """Of the result: what its state in the checkpoint stands for."""
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
        if self.windows is not None or self.period != Period():
            raise ValueError("window and period are for aggregate: a function keeps nothing")
        arrow_schema(self._session, "map_arrow", self.frame.schema)
        kinds = self._session.createDataFrame([], schema).schema
        promised = arrow_schema(self._session, "schema", kinds)
        work, watch = Map(function, promised), self._watch(self.frame.columns)
        if not self.delegated:
            made = self._pulled(self.frame.columns, work, promised, watch, kinds)
            return made.select(*map(named, promised.names))
        staying = Staying(work, watch)
        blocks = self._stay(self.frame.columns, staying, self._blocks)
        return self._unpacked(blocks, promised.types, kinds.fields)

    def aggregate(self, *aggregators: Aggregator) -> DataFrame:
        """The results of these aggregators for every key: the key columns, then one column each.

        With windows a column `window` comes first. Counts, sums, means and extremes are merged by
        Spark's own stateful aggregation, in any output mode; all others in update mode only.
        """
        for aggregator in aggregators:
            if not isinstance(aggregator, Aggregator):
                raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        schema = aggregated_schema(self.frame, self.key.names, aggregators)
        wanted = Aggregation(aggregators, self.key.names, schema)
        defined = replace(self, definition=self._defined(aggregators, schema))
        if all(map(is_native, aggregators)):
            return defined._natively(aggregators, wanted, schema)
        if self.windows is not None:
            other = next(a for a in aggregators if not is_native(a))
            raise ValueError(
                f"windows need aggregators that Spark itself can merge (Count, Sum, Mean, Min, "
                f"Max), and {other.name} is none; aggregate it without a window"
            )
        return defined._in_shards(aggregators, wanted, schema)

    def _defined(self, aggregators: Sequence[Aggregator], schema: pa.Schema) -> Definition:
        keys = [(name, self.frame.schema[name].dataType) for name in self.key.names]
        states = [state for a in aggregators for state in a.state(plain_schema(schema)).items()]
        return Definition(
            aggregators=tuple(map(described, aggregators)),
            keys=tuple(f"{name} {kind.simpleString()}" for name, kind in keys),
            window=None if self.windows is None else self.windows.described,
            placement="delegated" if self.delegated else "pull",
            states=tuple(f"{name} {_type_name(kind)}" for name, kind in states),
        )

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
        partials = Partials(aggregation)
        kinds = spark_schema(partials.schema, self._keys)
        watch = self._watch(read)
        if self.delegated:
            periodic = self._periodic(aggregation, watch, shard=None)
            rows = self._stay(read, periodic, kinds)
        else:
            rows = self._pulled(read, partials, partials.schema, watch, kinds)
        states = list(rows.schema.fields)
        own = [states.pop(0) for _ in keys]
        groups = [_as(column.name, key) for column, key in zip(own, self._keys, strict=False)]
        results = [
            merged(aggregator, states_of(aggregator, schema, states), of.dataType)
            for aggregator, of in zip(aggregators, self._results(wanted), strict=True)
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
        if not self.delegated:  # or group_by has warned already
            warn_of_leaks(self._session, stacklevel=3)
        keys = list(self.key.names)
        schema = schema.append(pa.field(_SHARD, pa.int32()))
        aggregation = Aggregation(aggregators, [_SHARD, *keys], schema)
        read = list(dict.fromkeys([_SHARD, *keys, *(c for a in aggregators for c in a.columns)]))
        watch = self._watch(read)
        if self.delegated:
            periodic = self._periodic(aggregation, watch, shard=_SHARD)
            blocks = self._stay(read, periodic, self._blocks)
        else:
            add = Add(aggregation, _SHARD, _SHARDS)
            blocks = self._pulled(read, add, BLOCKS, watch, self._blocks)
        merging = stateful(Merging(aggregation, (_SHARD,), self.definition))
        met = (
            blocks.select("bin", "block")
            .groupBy("bin")
            .transformWithStateInPandas(merging, _with_report(self._blocks), "Update", "None")
        )
        kinds = [*self._keys, *self._results(wanted)]
        return self._unpacked(met, wanted.result_schema.types, kinds)

    @property
    def _keys(self) -> list[StructField]:
        return [self.frame.schema[name] for name in self.key.names]

    def _results(self, wanted: Aggregation) -> list[StructField]:
        """The columns behind the keys."""
        return list(spark_schema(wanted.result_schema).fields[len(wanted.by) :])

    def _periodic(self, aggregation: Aggregation, watch: Stopwatch, shard: str | None) -> Periodic:
        moves_watermark = self.windows is not None and self.windows.watermark is not None
        return Periodic(
            aggregation,
            self.period,
            self.workers,
            shard=shard,
            watch=watch,
            definition=self.definition,
            most_held=inf if moves_watermark else MOST_HELD,
        )

    # From rows to workers and their reports.

    def _pulled(
        self,
        columns: Sequence[str],
        worker: Worker,
        schema: pa.Schema,
        watch: Stopwatch,
        kinds: StructType,
    ) -> DataFrame:
        """Every bin is a task, and whoever is free takes the next."""
        sent = self._sent(columns, called=0).select("bin", "block")
        at_workers = sent.repartitionById(self.bins, F.col("bin")).select("block")
        pulled = shipped(Pulled(worker, schema, watch))
        return self._reported(at_workers.mapInArrow(pulled, _with_report(kinds)))

    def _stay(self, columns: Sequence[str], worker: StatefulWorker, kinds: StructType) -> DataFrame:
        """Every worker is a partition of Spark's state, and stays where that is."""
        sent = self._sent(columns, called=self.workers)
        label = F.get(F.array(*map(F.lit, _labels(self._session, self.workers))), F.col("bin"))
        labelled = sent.select(label.alias("label"), "bin", "block", "latest")
        processor = stateful(worker)
        made = labelled.groupBy("label").transformWithStateInPandas(
            processor, _with_report(kinds), "Update", "None"
        )
        return self._reported(made)

    def _reported(self, made: DataFrame) -> DataFrame:
        """Take the reports out: they reach the driver with the completion of tasks."""
        report = F.col(REPORT)
        observed = made.observe(f"{self._name}_workers", F.collect_list(report).alias("reports"))
        self._listen()
        return observed.where(report.isNull()).drop(REPORT)

    def _unpacked(
        self, blocks: DataFrame, types: Sequence[pa.DataType], fields: Sequence[StructField]
    ) -> DataFrame:
        """The rows of blocks, in these types of Arrow and then in these columns of Spark."""
        numbered = [StructField(f"c{i}", field.dataType) for i, field in enumerate(fields)]
        schema = pa.schema([(f"c{i}", kind) for i, kind in enumerate(types)])
        unpack = shipped(Unpacked(schema))
        rows = blocks.select("block").mapInArrow(unpack, StructType(numbered))
        return rows.select(*map(_as, rows.columns, fields))

    def _sent(self, columns: Sequence[str], called: int) -> DataFrame:
        """(bin, block) rows, and their counts on the way to the driver."""
        frame, destinations = self._routed()
        hidden = [_BUCKET, *destinations.columns]
        hidden += [name for name in (_ARRIVED, _WEIGHT) if name in frame.columns]
        kept = list(dict.fromkeys([*self.key.names, *columns, *hidden]))
        if self.period.micros:
            kept = list(dict.fromkeys([*kept, TIME]))
        needed = {*columns, _BUCKET, _ARRIVED}
        packer = stream_source.StreamPacker(
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
        blocks = numbered.mapInArrow(shipped(packer), stream_source.SCHEMA)
        reports = F.collect_list(F.col("report")).alias("reports")
        return blocks.observe(f"{self._name}_sources", reports)

    def _routed(self) -> tuple[DataFrame, packing.Destinations]:
        """The frame with what a source task needs to know, and how it decides."""
        frame = self.frame.withColumn(_BUCKET, self.key.bucket())
        shard = F.pmod(self.key.hashed(), F.lit(_SHARDS)).cast("int")
        frame = frame.withColumn(_SHARD, shard)
        if self.salts is not None:
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
        here: packing.Destinations = stream_source.FirstChoice(
            _BUCKET, virtual, self.key.buckets, sizes
        )
        if self.in_order:
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
        # Spark runs a subquery once in a micro-batch, and hands its answer to every task.
        ask = shipped(stream_source.Asked(self.control.address, self.control.identity))
        asked = self._session.range(0, 1, 1, 1).mapInArrow(ask, "pin long")
        frame = frame.withColumn(_PIN, asked.scalar())
        return frame, stream_source.Controlled(
            path=self.control.address,
            pin=_PIN,
            bucket=_BUCKET,
            salt=None if self.salts is None else _SALT,
            bins=virtual,
            buckets=self.key.buckets,
            workers=self.bins,
            until_planned=here,
            definition=self.definition,
            scheme=scheme,
        )

    def _watch(self, columns: Sequence[str]) -> Stopwatch:
        arrived = _ARRIVED if self.arrived is not None else None
        tasks = 1 if self.delegated else self.virtual_workers
        return Stopwatch(_BUCKET, arrived, tuple(columns), self.key.names, self.workers, tasks)

    def _listen(self) -> None:
        if self._loops:
            raise ValueError(
                "a grouping of a stream is for one result; call group_by again for another one, "
                "with a control path of its own"
            )
        loop = ControlLoop(self._name, self.controller, self.make_controller)
        self._loops.append(loop)
        listen(self._session, loop)

    @property
    def _session(self) -> SparkSession:
        return self.frame.sparkSession

    @property
    def _blocks(self) -> StructType:
        return spark_schema(BLOCKS)


def _as(column: str, field: StructField) -> Column:
    """The column under its name, with what is noted beside it, except for a watermark."""
    notes = {k: v for k, v in (field.metadata or {}).items() if k != WATERMARK}
    return F.col(column).alias(field.name, metadata=notes)


def _with_report(kinds: StructType) -> StructType:
    fields = [StructField(field.name, field.dataType) for field in kinds.fields]
    return StructType([*fields, StructField(REPORT, StringType())])


def _type_name(kind: pa.DataType) -> str:
    """Spark's name of a type, which no setting of a session and no version of Arrow changes."""
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()
    except PySparkTypeError:  # the state of an aggregator that never leaves Python
        return str(kind)


def _labels(session: SparkSession, workers: int) -> list[int]:
    """For every worker the smallest number that Spark hashes to the partition of that number."""
    places = F.pmod(F.hash("id"), F.lit(workers)).alias("place")
    numbers = session.range(0, 64 * workers + 64, 1, 1).select(F.col("id").cast("int"))
    found = numbers.groupBy(places).agg(F.min("id").alias("label")).collect()
    labels = {row["place"]: int(row["label"]) for row in found}
    return [labels[worker] for worker in range(workers)]
