"""Route the messages of a real-time query to its workers, and observe the work.

A stream enters; the same messages leave at their workers. All columns are expressions of Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.control.definition import Definition
from steelyard.control.observed_sums import ObservedSums
from steelyard.control.reports import LATENCY_BINS
from steelyard.control.store import ControlStore, Pin
from steelyard.executor.real_time_plan import SCHEMA, PlanChoice
from steelyard.placements import StreamWorkers
from steelyard.spark.columns import Key, named, salt_of, visible
from steelyard.spark.executor_packages import ALWAYS, require_on_executors
from steelyard.spark.hashed_partitions import completion
from steelyard.spark.native_routing import BIN, bin_in
from steelyard.spark.shipping import by_value, shipped
from steelyard.spark.streaming.hidden_columns import (
    ARRIVED,
    BEGAN,
    BUCKET,
    ENDED,
    PIN,
    PLAN,
    SALT,
    WORKER,
)
from steelyard.spark.streaming.requirements import MOST_COUNTED

_CODES = MOST_COUNTED * 4 // 3
"""The size of the table with which Spark counts: it is exact up to three quarters of its size. That
is enough for the latencies of 67 workers, too."""

_LEAST_MEASURED = 0.05
"""The least service time of all workers, as a part of the batch, from which service times are used.
With less, the work is outside the two readings of the clock, as in an aggregation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RealTimeStage:
    """The settings by which the sources of a real-time query send messages to workers."""

    frame: DataFrame = field(repr=False)
    """The messages, with temporary columns for a key that is computed."""
    key: Key
    written_key: tuple[str | Column, ...]
    """The key as the user writes it."""
    workers: StreamWorkers
    control: ControlStore
    salts: tuple[str, ...]
    """The columns that distinguish messages of a key."""
    arrived: str | None
    parts: int = 1
    """The number of virtual workers that share a key that is not hot."""
    window: None = None

    @property
    def session(self) -> SparkSession:
        """The session of the stream."""
        return self.frame.sparkSession

    def routed(self, name: str, definition: Definition) -> DataFrame:
        """Return the messages with the number of their worker, `BIN`.

        Args:
            name: The name of the observation of the sources.
            definition: The definition of the state of the query.
        """
        choice = PlanChoice(
            path=self.control.address,
            identity=self.control.identity,
            workers=self.workers.count,
            virtual_workers=self.workers.virtual,
            buckets=self.key.buckets,
            definition=definition,
            parts=self.parts,
        )
        require_on_executors(self.session, ALWAYS, by_value(choice, ()))
        # Spark runs a subquery once in a batch, before the batch begins.
        rows = self.session.range(0, 1, 1, 1).mapInArrow(shipped(choice), SCHEMA)
        chosen = rows.select(F.struct("*").alias(PLAN)).scalar()
        plan, entries = F.col(PLAN), F.col(PLAN)["entries"]
        entry = F.get(entries, F.col(BUCKET))
        worker = bin_in(entries, entry, F.col(SALT), shift=32, steps=choice.steps)
        failed = F.raise_error(plan["failure"]).cast("long")
        hidden = {BUCKET: self.key.bucket(), SALT: salt_of(self.salts)}
        if self.arrived is not None:
            hidden[ARRIVED] = F.unix_millis(named(self.arrived))
        # The plan is a column of its own, so that the query contains its subquery only once.
        frame = self.frame.withColumns(hidden).withColumn(PLAN, chosen)
        frame = frame.withColumn(
            PIN, F.when(plan["failure"].isNull(), plan["pin"]).otherwise(failed)
        )
        # The plan is dropped before the observation, which copies every row.
        frame = frame.withColumn(BIN, worker).drop(PLAN, SALT)
        counted = frame.observe(name, F.max(PIN).alias("pin"), _counts(F.col(BUCKET), "buckets"))
        return counted.drop(PIN, BUCKET)

    def begun(self, sent: DataFrame) -> DataFrame:
        """Return the messages at their workers, with the time at which their work begins."""
        there = sent.repartitionById(self.workers.count, F.col(BIN))
        kept = [*visible(there), *([ARRIVED] if self.arrived is not None else [])]
        there = there.select(*map(named, kept))
        worker = F.spark_partition_id()  # which Spark does not compute inside an observation
        if self.arrived is not None:
            there = there.withColumn(ARRIVED, _milliseconds_now() - F.col(ARRIVED))
        return there.withColumn(WORKER, worker).withColumn(BEGAN, _nanoseconds())

    def ended(self, name: str, done: DataFrame) -> DataFrame:
        """Observe the work of every worker, and remove the temporary columns.

        Args:
            name: The name of the observation of the workers.
            done: The messages after their work, with the columns that `begun` added.
        """
        # A column of its own: Spark computes it after the columns of the work.
        timed = done.withColumn(ENDED, _nanoseconds() - F.col(BEGAN))
        waited = F.col(ARRIVED) if self.arrived is not None else F.lit(0)
        latency = F.greatest(waited + F.col(ENDED) / 1_000_000, F.lit(0.1))
        latency_bin = F.least(20 * F.log10(latency * 10), F.lit(LATENCY_BINS - 1)).cast("int")
        coded = F.col(WORKER) * LATENCY_BINS + latency_bin  # `latency_code`
        busy = [
            F.sum(F.when(F.col(WORKER) == worker, F.col(ENDED))).alias(f"busy_{worker}")
            for worker in range(self.workers.count)
        ]
        observed = timed.observe(name, _counts(coded, "latencies"), *busy)
        return observed.drop(WORKER, BEGAN, ENDED, ARRIVED)

    def counted(
        self, name: str, sent: DataFrame, partial: str, states: Sequence[Column]
    ) -> DataFrame:
        """Aggregate at the workers; a row with the new partial result leaves for every message.

        Spark's stateful aggregation hashes its keys to a partition. A further column leads each key
        to the partition of its worker.

        Args:
            name: The name of the observation of the workers.
            sent: The messages with the number of their worker.
            partial: The name of the column with the partial results.
            states: The aggregates, with their names.
        """
        count = self.workers.count
        keys = [named(name) for name in self.key.names]
        hidden = {WORKER: completion(keys, F.col(BIN), count)}
        arrived = [F.last(ARRIVED).alias(ARRIVED)] if self.arrived is not None else []
        messages = F.count(F.lit(1)).alias("messages")
        made = sent.withColumns(hidden).groupBy(*keys, WORKER).agg(messages, *states, *arrived)
        made = made.withColumn(WORKER, F.spark_partition_id()).withColumn(BEGAN, _nanoseconds())
        if arrived:
            made = made.withColumn(ARRIVED, _milliseconds_now() - F.col(ARRIVED))
        numbered = [F.col(f"state_{i}") for i in range(len(states))]
        parts = F.struct(F.col("messages"), F.col(WORKER).alias("worker"), *numbered)
        made = self.ended(name, made.withColumn(partial, parts))
        results = [
            named(name).alias(result)
            for name, result in zip(self.key.names, self.key.result_names, strict=True)
        ]
        return made.select(*results, partial)

    def sums(self, batch: int, seconds: float, of_sources: Any, of_workers: Any) -> ObservedSums:
        """Return the sums of a batch, from its observed metrics.

        Args:
            batch: The number of the batch.
            seconds: The length of the batch.
            of_sources: The observation of the sources; None if nothing was observed.
            of_workers: The observation of the workers; None if nothing was observed.
        """
        sources, workers = _fields(of_sources), _fields(of_workers)
        named = [f"busy_{worker}" for worker in range(self.workers.count)]
        busy = [(workers.get(name) or 0) / 1e9 for name in named]
        return ObservedSums(
            batch=batch,
            seconds=seconds,
            workers=self.workers.count,
            buckets=self.key.buckets,
            version=Pin.from_long(sources.get("pin") or 0).number,
            counted_buckets=_pairs(sources.get("buckets")),
            counted_latencies=_pairs(workers.get("latencies")),
            busy=busy if sum(busy) >= _LEAST_MEASURED * seconds else None,
        )


def _counts(numbers: Column, name: str) -> Column:
    """Return an aggregate that counts every number; exact for up to `MOST_COUNTED` numbers."""
    counted = F.call_function("approx_top_k", numbers, F.lit(MOST_COUNTED), F.lit(_CODES))
    return counted.alias(name)


def _nanoseconds() -> Column:
    return F.expr("cast(java_method('java.lang.System', 'nanoTime') AS bigint)")


def _milliseconds_now() -> Column:
    return F.expr("cast(java_method('java.lang.System', 'currentTimeMillis') AS bigint)")


def _fields(observed: Any) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = observed.asDict() if observed is not None else {}
    return fields


def _pairs(counted: Sequence[Any] | None) -> list[tuple[int, int]]:
    return [(row["item"], row["count"]) for row in counted or () if row["item"] is not None]
