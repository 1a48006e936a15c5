"""A stream and its key enter; a grouping leaves, checked before any work starts."""

import os
from collections.abc import Sequence
from functools import partial
from typing import overload

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import TimestampType

from steelyard.control.controller import Controller
from steelyard.control.store import ControlStore
from steelyard.placements import Delegated, Placement, Pull, RealTime, StreamWorkers
from steelyard.plans import Balance, RoutingPlan
from steelyard.reported_keys import ReportedKeys
from steelyard.spark.caller_warnings import warn_caller
from steelyard.spark.columns import require_columns, require_frame
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
from steelyard.spark.streaming.grouped_stream import GroupedStream
from steelyard.spark.streaming.real_time_stage import RealTimeStage
from steelyard.spark.streaming.real_time_stream import RealTimeStream
from steelyard.spark.streaming.requirements import (
    period_of,
    require_real_time,
    require_room_for_state,
    require_time,
    require_window,
    slot_length_of,
)
from steelyard.spark.streaming.source_stage import SourceStage
from steelyard.spark.versions.supported import require_streams
from steelyard.windows import Window


@overload
def group_stream(
    stream: DataFrame,
    *key: str | Column,
    workers: int,
    placement: RealTime,
    control: str | os.PathLike[str],
    slot: int | str = ...,
    salt: Sequence[str] | None = ...,
    routing: Balance = ...,
    arrived: str | None = ...,
) -> RealTimeStream: ...


@overload
def group_stream(
    stream: DataFrame,
    *key: str | Column,
    workers: int,
    placement: Pull | Delegated = ...,
    control: str | os.PathLike[str] | None = ...,
    window: Window | None = ...,
    slot: int | str = ...,
    weight: str | None = ...,
    salt: Sequence[str] | None = ...,
    routing: Routing = ...,
    arrived: str | None = ...,
) -> GroupedStream: ...


@overload
def group_stream(
    stream: DataFrame,
    *key: str | Column,
    workers: int,
    placement: Placement = ...,
    control: str | os.PathLike[str] | None = ...,
    window: Window | None = ...,
    slot: int | str = ...,
    weight: str | None = ...,
    salt: Sequence[str] | None = ...,
    routing: Routing = ...,
    arrived: str | None = ...,
) -> GroupedStream | RealTimeStream: ...


def group_stream(
    stream: DataFrame,
    *key: str | Column,
    workers: int,
    placement: Placement = Pull(),  # noqa: B008  # frozen
    control: str | os.PathLike[str] | None = None,
    window: Window | None = None,
    slot: int | str = 1,
    weight: str | None = None,
    salt: Sequence[str] | None = None,
    routing: Routing = Balance(),  # noqa: B008  # frozen
    arrived: str | None = None,
) -> GroupedStream | RealTimeStream:
    """Group a stream by key on balanced workers, like `group_by`.

    While the query runs, the sources learn hot keys and the speeds of workers. The results are
    streams. One grouping is for one result. The messages of a key that is split do not keep their
    order.

    Args:
        stream: The rows to group, as `spark.readStream` reads them.
        key: The columns of the key, as in `group_by`.
        workers: The number of workers.
        placement: `Pull()`: workers are tasks without state, and a free task slot takes the next
            one. `Delegated()`: workers stay on the executors that hold their state, and virtual
            workers move from busy workers to idle ones. `RealTime()`: every message is processed
            when it arrives, by Spark's own expressions, on Spark 4.3 and newer.
        control: A folder that the driver and all executors share. Sources follow the plans and
            assignments that the driver publishes there. Without it each source plans from the
            rows that it reads, and nothing is learned. `Delegated` and `RealTime` need it.
        window: Windows of event time, for `aggregate`.
        slot: The time between two decisions on plans and virtual workers: a number of
            micro-batches, or a length of time such as "30 seconds", after which the next
            micro-batch ends the slot.
        weight: A column of numbers of at least 0, the load of each row; 1 by default.
        salt: The columns that distinguish rows of one key, as in `repartition`; Kafka's partition
            and offset by default.
        routing: The settings of the balancing. Or a `RoutingPlan` (with `Pull`). Or a `Scheme`, by
            which every source task routes message by message.
        arrived: A column of times from which latencies are measured; Kafka's by default.

    Returns:
        The grouped stream, on which `aggregate` or `map_arrow` defines the result; with `RealTime`,
        `select` or `transform`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument has a value that is not allowed, or the settings of the session do
            not allow the placement.

    >>> import steelyard as sy
    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> rows.write.parquet(f"{folder}/visits")
    >>> stream = spark.readStream.schema(rows.schema).parquet(f"{folder}/visits")
    >>> grouped = group_stream(stream, "page", workers=4, control=f"{folder}/control")
    >>> counts = grouped.aggregate(sy.Count())
    >>> writer = counts.writeStream.outputMode("update").format("memory").queryName("counts")
    >>> writer.trigger(availableNow=True).start().awaitTermination(120)
    True
    >>> spark.table("counts").orderBy("count", ascending=False).first()
    Row(page='hot', count=5000)
    """
    crew = StreamWorkers(workers, placement)
    _require_stream(stream)
    if isinstance(placement, RealTime):
        require_real_time(stream, routing, control=control, window=window, weight=weight)
    found = ResolvedColumns.of(stream, key, weight=weight, salt=salt)
    _require_arrived(stream, arrived)
    require_routing(routing, ["balance", "plan", "scheme"])
    require_not_decided(routing, weight=weight)
    balance = balance_of(routing)
    planner_of(balance, crew.virtual, crew.task_sizes)  # refuses settings without a plan
    _require_plan(routing, crew)
    require_key_of(routing, found.texts)
    require_window(stream, window)
    _require_order(routing, in_order=found.in_order, has_control=control is not None)
    period = period_of(placement, window)
    length = slot_length_of(slot)
    store = None if control is None else ControlStore(control)
    if crew.own_virtual_workers and store is not None:
        _require_same_workers(store, workers)
    if crew.are_delegated:
        require_room_for_state(stream.sparkSession, workers, control)
    if store is not None:
        store.prepare()
    buckets = routing.buckets if isinstance(routing, RoutingPlan) else balance.buckets
    make_controller = partial(
        Controller,
        workers,
        crew.each,
        delegation=crew.own_virtual_workers,
        store=store,
        slot=length,
        epsilon=balance.epsilon,
        buckets=buckets,
        decay=balance.decay,
        capacities=crew.capacities,
        rules=crew.rules,
        foresees=kind_of(routing) != "scheme" and weight is None,
    )
    salts = _salts(found, routing)
    arrived = arrived or ("timestamp" if _is_kafka(stream) else None)
    if isinstance(placement, RealTime):
        assert store is not None  # `require_real_time`
        stage = RealTimeStage(
            frame=found.wide,
            key=found.hashed_key(buckets),
            written_key=key,
            workers=crew,
            control=store,
            salts=salts or found.salts().names,
            arrived=arrived,
            parts=placement.parts,
        )
        return RealTimeStream(stage, make_controller)
    source = SourceStage(
        frame=found.wide,
        key=found.hashed_key(buckets),
        workers=crew,
        control=store,
        routing=routing,
        salts=salts,
        in_order=found.in_order,
        weight=found.weight,
        arrived=arrived,
        window=window,
        reported=ReportedKeys.of(balance.report_keys),
        by_event_time=period.micros > 0,
    )
    return GroupedStream(source, period, make_controller)


def _require_stream(stream: DataFrame) -> None:
    require_frame("stream", stream)
    instead = (
        "; repartition micro-batches with sy.Balancer in foreachBatch, or group each of them with "
        "sy.group_by"
    )
    require_streams(stream, instead)
    if not stream.isStreaming:
        raise ValueError("stream must be a streaming DataFrame; use sy.group_by for this one")


def _require_arrived(stream: DataFrame, arrived: str | None) -> None:
    if arrived is not None:
        require_columns(stream, "arrived", [arrived])
        require_time(stream, "arrived", arrived)


def _require_plan(routing: Routing, crew: StreamWorkers) -> None:
    if not isinstance(routing, RoutingPlan):
        return
    if crew.are_delegated:
        raise ValueError(
            "routing: a RoutingPlan needs placement=sy.Pull(); with sy.Delegated() plans are made "
            "from the counts of the stream"
        )
    require_workers_of(routing, crew.count, crew.each)


def _require_order(routing: Routing, *, in_order: bool, has_control: bool) -> None:
    """Refuse routing that depends on the order of rows if a retry may change that order."""
    if in_order:
        return
    if kind_of(routing) == "scheme":
        raise ValueError(
            "routing: a Scheme depends on the order of messages, and a retry repeats that order "
            "only for streams directly from files or Kafka; use a RoutingPlan or sy.Balance()"
        )
    if not has_control and not isinstance(routing, RoutingPlan):
        raise ValueError(
            "this stream does not come directly from its source, so sources cannot plan from the "
            "rows that they read; pass `control`, a folder for plans"
        )


def _require_same_workers(store: ControlStore, workers: int) -> None:
    """Refuse another number of delegated workers than before, because states would be lost."""
    learned = store.learned() or {}
    before = learned.get("workers", workers)
    if learned.get("source") is not None and before != workers:
        raise ValueError(
            f"the control path {store.shown} is of {before} delegated workers, and their number is "
            f"fixed by the checkpoint: use {before} workers, or a new checkpoint and control path"
        )


def _is_kafka(frame: DataFrame) -> bool:
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    is_timed = isinstance(kinds.get("timestamp"), TimestampType)
    return is_timed and {"topic", "partition", "offset"} <= kinds.keys()


def _salts(found: ResolvedColumns, routing: Routing) -> tuple[str, ...] | None:
    """Return the columns that distinguish messages of a key; None: their position in the task.

    By default these are Kafka's partition and offset, which no two messages share. They are not
    used if an earlier step chose one of several messages. Without columns hot keys are not split.
    """
    plan = routing if isinstance(routing, RoutingPlan) else None
    may_split = plan is None or bool(plan.splits)
    salts, frame, is_default = found.salts(), found.frame, found.salt is None
    is_doubtful = {"partition", "offset"} & found.repeated.doubts.keys()
    if is_default and _is_kafka(frame) and not is_doubtful:
        return ("partition", "offset")
    if is_default and found.in_order and plan is None:
        return None
    if is_default and may_split and set(frame.columns) <= set(found.key):
        warn_caller(
            "the messages of a key are equal, because the stream has no column but its key, and "
            "their positions cannot be used after a shuffle or with a RoutingPlan: a hot key is "
            "not split; keep a column that differs, and name it with salt="
        )
    if may_split and not salts.names:
        salts.warn()
    return salts.names
