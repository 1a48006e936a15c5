"""What a stream and its session must have, checked before any work starts."""

import warnings

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from steelyard.control.controller import SlotLength
from steelyard.durations import seconds_of
from steelyard.executor.period import Period
from steelyard.placements import Delegated, Placement
from steelyard.spark.columns import require_columns
from steelyard.spark.session import STATE_IN_ROCKSDB, parallelism
from steelyard.spark.streaming.hidden_columns import WATERMARK
from steelyard.spark.versions import warn_of_leaks
from steelyard.validation import require_whole
from steelyard.windows import Window


def require_window(stream: DataFrame, window: Window | None) -> None:
    """Refuse a window whose column of event times is not there, or has a watermark already."""
    if window is None:
        return
    if not isinstance(window, Window):
        raise TypeError(f"window must be sy.Window(time, length), got {window!r}")
    require_columns(stream, "time", [window.time])
    require_time(stream, "time", window.time)
    for column in stream.schema.fields:
        if WATERMARK in (column.metadata or {}):
            raise ValueError(
                f"the stream has a watermark on {column.name!r} already, which Python stages lose; "
                "leave it out and pass sy.Window(..., watermark=...)"
            )


def require_time(frame: DataFrame, argument: str, name: str) -> None:
    """Refuse a column that holds no moments."""
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType):
        found = kind.simpleString()
        raise ValueError(f"{argument}: column {name!r} must be a timestamp, got {found}")  # noqa: TRY004


def period_of(placement: Placement, window: Window | None) -> Period:
    """The period of delegated workers: a number of micro-batches, or a length of event time."""
    if not isinstance(placement, Delegated):
        return Period()
    if not isinstance(placement.period, str):
        return Period(batches=placement.period)
    if window is None:
        raise ValueError("a period of event time needs a window; or give a number of batches")
    return Period(micros=round(seconds_of("period", placement.period) * 1e6))


def slot_length_of(slot: int | str) -> SlotLength:
    """A number of micro-batches, or a length of time."""
    if isinstance(slot, str):
        return SlotLength(seconds=seconds_of("slot", slot))
    require_whole("slot", slot, least=1)
    return SlotLength(batches=slot)


def require_rocksdb(session: SparkSession, who: str) -> None:
    """Refuse Spark's other way to keep state, which cannot hold what is kept in Python."""
    setting, wanted = next(iter(STATE_IN_ROCKSDB.items()))
    if "RocksDB" not in (session.conf.get(setting, "") or ""):
        raise ValueError(f"{who} in RocksDB: set {setting} to {wanted}")


def require_room_for_state(session: SparkSession, workers: int, control: object) -> None:
    """Workers that stay need a partition of state each, and a path to be told what is theirs."""
    if control is None:
        raise ValueError(
            "sy.Delegated() needs a control path: give control=, a folder that the driver "
            "and all executors see"
        )
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 0)
    if partitions != workers:
        raise ValueError(
            f"each of {workers} workers needs a partition of state, and there are {partitions}: "
            f"set spark.sql.shuffle.partitions to {workers} before the query starts"
        )
    require_rocksdb(session, "workers that stay keep their state")
    warn_of_leaks(session, stacklevel=3)
    if (session.conf.get("spark.master") or "").startswith("local["):
        return  # one executor: wherever a worker's task runs, its state is there
    slots = parallelism(session)
    wait = session.conf.get("spark.locality.wait", "3s")
    if slots < workers and wait == "3s":
        warnings.warn(
            f"{workers} workers share {slots} slots of Spark's; with more than one executor set "
            "spark.locality.wait to longer than a micro-batch, or workers are moved about",
            stacklevel=3,
        )
