"""Check a stream and its session before any work starts."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from steelyard.control.controller import SlotLength
from steelyard.durations import seconds_of
from steelyard.executor.period import Period
from steelyard.placements import Delegated, Placement
from steelyard.plans import Balance
from steelyard.spark.caller_warnings import warn_caller
from steelyard.spark.columns import require_columns
from steelyard.spark.retries.repeated import sources_of
from steelyard.spark.session import STATE_IN_ROCKSDB, parallelism
from steelyard.spark.streaming.hidden_columns import WATERMARK
from steelyard.spark.versions.socket_leaks import warn_of_leaks
from steelyard.spark.versions.supported import REAL_TIME, is_of_connect, require_version
from steelyard.validation import require_whole
from steelyard.windows import Window


def require_window(stream: DataFrame, window: Window | None) -> None:
    """Refuse a window without a valid column of event times, or a stream with a watermark."""
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
                "remove it and pass sy.Window(..., watermark=...)"
            )


def require_time(frame: DataFrame, argument: str, name: str) -> None:
    """Refuse a column that does not hold timestamps."""
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType):
        found = kind.simpleString()
        raise ValueError(f"{argument}: column {name!r} must be a timestamp, got {found}")  # noqa: TRY004


def period_of(placement: Placement, window: Window | None) -> Period:
    """Return the period of delegated workers: micro-batches, or a length of event time."""
    if not isinstance(placement, Delegated):
        return Period()
    if not isinstance(placement.period, str):
        return Period(batches=placement.period)
    if window is None:
        raise ValueError(
            "a period of event time needs a window: pass `window`, or a number of micro-batches as "
            "the period"
        )
    return Period(micros=round(seconds_of("period", placement.period) * 1e6))


def slot_length_of(slot: int | str) -> SlotLength:
    """Return the length of a slot: a number of micro-batches, or a length of time."""
    if isinstance(slot, str):
        return SlotLength(seconds=seconds_of("slot", slot))
    require_whole("slot", slot, least=1)
    return SlotLength(batches=slot)


def require_rocksdb(session: SparkSession, statement: str) -> None:
    """Refuse a state store other than RocksDB, because Spark stores Python state only there.

    Args:
        session: The session of the stream.
        statement: The beginning of the error, such as "delegated workers keep their state".
    """
    setting, wanted = next(iter(STATE_IN_ROCKSDB.items()))
    if "RocksDB" not in (session.conf.get(setting, "") or ""):
        raise ValueError(
            f"{statement} in RocksDB, and this session uses another state store: set {setting} to "
            f"{wanted} before the stream is defined"
        )


MOST_COUNTED = 12_288
"""The most buckets that an observed metric of a real-time query counts exactly."""


def require_real_time(
    stream: DataFrame, routing: object, *, control: object, window: object, weight: object
) -> None:
    """Refuse a stream or settings that Spark's real-time mode cannot run.

    Args:
        stream: The stream.
        routing: The setting `routing`.
        control: The control path, which is required.
        window: The setting `window`.
        weight: The setting `weight`.
    """
    instead = "; use sy.Pull() or sy.Delegated(), which answer in seconds"
    require_version(stream.sparkSession, REAL_TIME, "sy.RealTime()", instead)
    if is_of_connect(stream):
        raise ValueError(f"sy.RealTime() does not run through Spark Connect{instead}")
    for kind in sources_of(stream):
        if kind != "kafka":
            raise ValueError(
                f"stream: Spark's real-time mode reads only Kafka, and this stream reads {kind}; "
                "use placement=sy.Pull() or sy.Delegated()"
            )
    if control is None:
        raise ValueError(
            "sy.RealTime() needs a control path: pass `control`, a folder that the driver and all "
            "executors share"
        )
    for name, value in {"window": window, "weight": weight}.items():
        if value is not None:
            raise ValueError(
                f"{name} has no effect in real-time mode: leave it out, or use placement=sy.Pull() "
                "or sy.Delegated()"
            )
    if not isinstance(routing, Balance):
        raise ValueError(  # noqa: TRY004  # a plan is right with another placement
            f"routing must be a Balance with sy.RealTime(), got {routing!r}; plans and schemes run "
            "with placement=sy.Pull()"
        )
    if routing.buckets > MOST_COUNTED:
        raise ValueError(
            f"buckets must be at most {MOST_COUNTED:,} with sy.RealTime(), so that Spark counts "
            f"them exactly; got {routing.buckets:,}"
        )


def require_room_for_state(session: SparkSession, workers: int, control: object) -> None:
    """Refuse delegated workers without a control path or without a partition of state each."""
    if control is None:
        raise ValueError(
            "sy.Delegated() needs a control path: pass `control`, a folder that the driver "
            "and all executors share"
        )
    require_state_partitions(session, workers)
    require_rocksdb(session, "delegated workers keep their state")
    warn_of_leaks(session)
    if (session.conf.get("spark.master") or "").startswith("local["):
        return  # the only executor holds all state
    slots = parallelism(session)
    wait = session.conf.get("spark.locality.wait", "3s")
    if slots < workers and wait == "3s":
        warn_caller(
            f"{workers} workers share {slots} task slots; with more than one executor set "
            "spark.locality.wait to longer than a micro-batch, or workers move between executors"
        )


def require_state_partitions(session: SparkSession, workers: int) -> None:
    """Refuse a session in which the number of partitions of state differs from that of workers."""
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 0)
    if partitions != workers:
        raise ValueError(
            f"each of {workers} workers needs a partition of state, and there are {partitions} "
            f"partitions: set spark.sql.shuffle.partitions to {workers} before the query starts"
        )
