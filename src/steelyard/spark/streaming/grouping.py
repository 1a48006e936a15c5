"""Streams on balanced workers: what is asked for is checked before any work starts."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampType

from steelyard.control.controller import Controller
from steelyard.control.store import ControlStore
from steelyard.executor.period import Period
from steelyard.plans import RoutingPlan
from steelyard.spark.columns import Key, require_columns
from steelyard.spark.retries.repeated import Repeated, repeated
from steelyard.spark.salts import Salts
from steelyard.spark.streaming.grouped import StreamGrouped
from steelyard.spark.streaming.settings import (
    StreamSettings,
    period_of,
    require_room_for_state,
    require_sound,
    require_time,
    slot_length_of,
    virtual_workers_of,
    windows_of,
)

if TYPE_CHECKING:
    from steelyard.schemes import Scheme


def group_stream(
    frame: DataFrame,
    key: Key,
    workers: int,
    settings: StreamSettings,
    *,
    plan: RoutingPlan | None,
    scheme: "Scheme | None",
    salt: Sequence[str] | None,
    weight: str | None,
    epsilon: float,
    capacities: Sequence[float] | None,
    tasks_per_worker: int,
) -> StreamGrouped:
    """Check everything before any work starts, and put it together."""
    require_sound(settings, tasks_per_worker)
    delegated = settings.placement == "delegated"
    virtual = virtual_workers_of(settings.virtual_workers, tasks_per_worker, delegated)
    bins = workers * (1 if delegated else virtual)
    if plan is not None and (plan.bins != bins or delegated):
        if delegated:
            raise ValueError("plan is for placement='pull': delegated workers follow the counts")
        raise ValueError(
            f"the plan is for {plan.bins} bins, not for {workers} workers of {virtual} tasks each"
        )
    if capacities is not None and not delegated:
        raise ValueError(
            "capacities are a hint for placement='delegated'; with 'pull' the free take more"
        )
    windows = windows_of(frame, settings)
    if settings.arrived is not None:
        require_columns(frame, "arrived", [settings.arrived])
        require_time(frame, "arrived", settings.arrived)
    repeats = repeated(frame)
    in_order = repeats.in_order_by([*key.names, *([] if weight is None else [weight])])
    if scheme is not None and not in_order:
        raise ValueError(
            "scheme: routing message by message depends on their order, which only a stream "
            "straight from files or Kafka keeps when a task is run again; use a plan"
        )
    if settings.control is None and plan is None and not in_order:
        raise ValueError(
            "this stream does not come straight from its source, so it cannot be planned while it "
            "is read; give a control path, by which the workers learn"
        )
    period = period_of(settings.period, windows)
    if period != Period() and not delegated:
        raise ValueError("period is for placement='delegated': with 'pull' workers keep nothing")
    slot = slot_length_of(settings.slot)
    store = None if settings.control is None else ControlStore(settings.control)
    if delegated and store is not None:
        _require_as_many(store, workers)
    if delegated:
        require_room_for_state(frame.sparkSession, workers, settings.control)
    if store is not None:
        store.prepare()
    make_controller = partial(
        Controller,
        workers,
        virtual,
        delegation=delegated,
        store=store,
        slot=slot,
        epsilon=epsilon,
        buckets=key.buckets,
        decay=settings.decay,
        capacities=capacities,
        foresees=scheme is None and weight is None,
    )
    return StreamGrouped(
        frame=frame,
        key=key,
        workers=workers,
        virtual_workers=virtual,
        delegated=delegated,
        control=store,
        controller=make_controller(),
        make_controller=make_controller,
        plan=plan,
        scheme=scheme,
        salts=_salts(
            frame,
            salt,
            key.names,
            repeats,
            by_place=in_order and plan is None,
            may_split=plan is None or bool(plan.splits),
        ),
        in_order=in_order,
        weight=weight,
        epsilon=epsilon,
        period=period,
        windows=windows,
        arrived=settings.arrived or ("timestamp" if _is_kafka(frame) else None),
    )


def _require_as_many(store: ControlStore, workers: int) -> None:
    """Refuse another number of workers than before: what the others hold would be forgotten."""
    learned = store.learned() or {}
    before = learned.get("workers", workers)
    if learned.get("source") is not None and before != workers:
        raise ValueError(
            f"the control path {store.shown} is of {before} delegated workers, and their number is "
            f"fixed by the checkpoint: use {before}, or a new checkpoint and a new control path"
        )


def _is_kafka(frame: DataFrame) -> bool:
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    is_timed = isinstance(kinds.get("timestamp"), TimestampType)
    return is_timed and {"topic", "partition", "offset"} <= kinds.keys()


def _salts(
    frame: DataFrame,
    salt: Sequence[str] | None,
    key: Sequence[str],
    repeats: Repeated,
    *,
    by_place: bool,
    may_split: bool,
) -> tuple[str, ...] | None:
    """The columns that tell messages of a key apart; None where their place in a task does.

    Kafka's partition and offset, which no two messages share, unless the user names others, or a
    step before has picked one of several messages. Without any column hot keys stay whole.
    """
    salts = Salts.of(frame, salt, key, repeats)
    if salt is None and _is_kafka(frame) and not {"partition", "offset"} & repeats.doubts.keys():
        return ("partition", "offset")
    if salt is None and by_place:
        return None
    if salt is None and may_split and set(frame.columns) <= set(key):
        warnings.warn(
            "the messages of a key are all alike, as the stream has no column but its key, and no "
            "place of their own, behind a shuffle or by a plan that is given: a hot key cannot be "
            "split; keep a column that tells them apart, or name one with salt=",
            stacklevel=5,
        )
    if may_split and not salts.names:
        salts.warn(stacklevel=5)
    return salts.names
