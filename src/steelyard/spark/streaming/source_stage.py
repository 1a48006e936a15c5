"""The sources of a stream: rows enter; blocks of rows leave, each with its bin."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.control.definition import Definition
from steelyard.control.store import ControlStore
from steelyard.executor import packing, stream_source
from steelyard.placements import StreamWorkers
from steelyard.plans import Balance, RoutingPlan
from steelyard.reported_keys import ReportedKeys
from steelyard.spark.columns import Key, named, salt_of
from steelyard.spark.native_routing import BIN, with_bin
from steelyard.spark.routing import Routing, balance_of
from steelyard.spark.shipping import shipped
from steelyard.spark.streaming.hidden_columns import (
    ARRIVED,
    BUCKET,
    HASH,
    PANE,
    PIN,
    SALT,
    SHARD,
    SHARDS,
    TIME,
    WEIGHT,
)
from steelyard.windows import Window


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceStage:
    """The settings by which the sources of a stream send rows to workers."""

    frame: DataFrame = field(repr=False)
    """The rows, with temporary columns for a key or a weight that is computed."""
    key: Key
    workers: StreamWorkers
    control: ControlStore | None
    routing: Routing = field(repr=False)
    salts: tuple[str, ...] | None
    """The columns that distinguish messages of a key; None: their position in the task."""
    in_order: bool
    """Whether a retry of a task gets the same messages in the same order."""
    weight: str | None
    arrived: str | None
    window: Window | None
    reported: ReportedKeys
    """How reports and errors name keys."""
    by_event_time: bool
    """Whether workers end their periods by event time, and therefore need the latest one."""

    @property
    def session(self) -> SparkSession:
        """The session of the stream."""
        return self.frame.sparkSession

    def blocks(self, columns: Sequence[str], definition: Definition) -> DataFrame:
        """Return (bin, block, report, latest) rows; blocks hold these columns and the bucket."""
        frame, destinations = self._routed(definition)
        hidden = [BUCKET, *destinations.columns]
        hidden += [name for name in (ARRIVED, WEIGHT) if name in frame.columns]
        hidden += [TIME] if self.by_event_time else []
        kept = list(dict.fromkeys([*self.key.names, *columns, *hidden]))
        needed = {*columns, BUCKET, ARRIVED}
        packer = stream_source.StreamPacker(
            destinations=destinations,
            names=tuple(kept),
            keys=self.key.names,
            bucket=BUCKET,
            weight=WEIGHT if self.weight is not None else None,
            buckets=self.key.buckets,
            dropped=tuple(name for name in kept if name not in needed),
            called=self.workers.count if self.workers.are_delegated else 0,
            time=TIME if self.by_event_time else None,
            reported=self.reported,
        )
        numbered = frame.select(*map(named, kept)).toDF(*(f"c{i}" for i in range(len(kept))))
        return numbered.mapInArrow(shipped(packer), stream_source.SCHEMA)

    def _routed(self, definition: Definition) -> tuple[DataFrame, packing.Destinations]:
        """Return the frame with the columns for source tasks, and their choice of bins."""
        frame = self._with_hidden_columns()
        if isinstance(self.routing, RoutingPlan):
            routed = with_bin(frame, self.routing, F.col(BUCKET), F.col(SALT))
            return routed, packing.Decided(BIN)
        scheme: packing.Destinations | None = None
        if not isinstance(self.routing, Balance):
            frame = frame.withColumn(HASH, self.key.hashed())
            scheme = packing.RoutedHere(HASH, self.routing, self.workers.virtual)
        if self.control is None:
            return frame, scheme or self._unlearned()
        # Spark runs a subquery once in a micro-batch, and sends its answer to every task.
        choose = shipped(stream_source.VersionChoice(self.control.address, self.control.identity))
        chosen = self.session.range(0, 1, 1, 1).mapInArrow(choose, "pin long")
        controlled = stream_source.Controlled(
            path=self.control.address,
            pin=PIN,
            bucket=BUCKET,
            salt=None if self.salts is None else SALT,
            bins=self.workers.virtual,
            buckets=self.key.buckets,
            workers=self.workers.bins,
            until_planned=self._unlearned(),
            definition=definition,
            scheme=scheme,
        )
        return frame.withColumn(PIN, chosen.scalar()), controlled

    def _with_hidden_columns(self) -> DataFrame:
        shard = F.pmod(self.key.hashed(), F.lit(SHARDS)).cast("int")
        frame = self.frame.withColumn(BUCKET, self.key.bucket()).withColumn(SHARD, shard)
        if self.salts is not None:
            frame = frame.withColumn(SALT, salt_of(self.salts))
        if self.weight is not None:
            frame = frame.withColumn(WEIGHT, named(self.weight).cast("double"))
        if self.arrived is not None:
            frame = frame.withColumn(ARRIVED, F.unix_micros(named(self.arrived)))
        if self.window is not None:
            frame = frame.withColumn(TIME, F.unix_micros(named(self.window.time)))
            pane = F.lit(self.window.pane)
            frame = frame.withColumn(PANE, F.col(TIME) - F.pmod(F.col(TIME), pane))
        return frame

    def _unlearned(self) -> packing.Destinations:
        """Return the choice of bins of a source that knows only its own rows."""
        virtual, sizes = self.workers.virtual, self.workers.task_sizes
        if not self.in_order:
            return stream_source.FirstChoice(BUCKET, virtual, self.key.buckets, sizes)
        return packing.PlannedHere(
            bucket=BUCKET,
            weight=WEIGHT if self.weight is not None else None,
            bins=virtual,
            epsilon=balance_of(self.routing).epsilon,
            buckets=self.key.buckets,
            capacities=sizes,
        )
