"""What a stream can be asked for, checked before any work starts."""

import os
import warnings
from dataclasses import dataclass, fields

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from steelyard.control.controller import SlotLength
from steelyard.durations import seconds_of
from steelyard.executor.period import Period
from steelyard.spark.columns import HIDDEN, require_columns
from steelyard.spark.session import STATE_IN_ROCKSDB, parallelism
from steelyard.spark.versions import warn_of_leaks
from steelyard.validation import require_whole

TIME = f"{HIDDEN}time"
"""The column of event times, behind the workers."""

WATERMARK = "spark.watermarkDelayMs"
"""What Spark notes beside a column that has a watermark."""


@dataclass(frozen=True)
class Windows:
    """Event time: the column, and how it is cut."""

    time: str
    window: str
    slide: str | None
    watermark: str | None

    @property
    def pane(self) -> int:
        """Microseconds that no window divides: partial states are kept for each of them."""
        return round(seconds_of("window", self.slide or self.window) * 1e6)

    @property
    def described(self) -> str:
        """The windows as text, without the watermark, which a restart may change."""
        length, every = (seconds_of("window", w) for w in (self.window, self.slide or self.window))
        return f"{length:g} seconds of {self.time!r} every {every:g} seconds"

    def column(self) -> Column:
        """The windows of a row with a time of its own, as Spark has them."""
        return F.window(F.col(TIME), self.window, self.slide)


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """What only a stream can be asked for; `steelyard.group_by` tells what each is."""

    control: str | os.PathLike[str] | None = None
    placement: str = "pull"
    virtual_workers: int | None = None
    slot: int | str = 1
    period: int | str = 1
    decay: float = 0.5
    time: str | None = None
    window: str | None = None
    slide: str | None = None
    watermark: str | None = None
    arrived: str | None = None

    def refuse_unless_stream(self, frame: DataFrame) -> None:
        """Refuse what would go unheard where there is no stream."""
        for asked in fields(self):
            if getattr(self, asked.name) != asked.default and not frame.isStreaming:
                raise ValueError(f"{asked.name} is for streams, and this frame is none")


def require_sound(settings: StreamSettings, tasks_per_worker: int) -> None:
    """Refuse settings that no stream can have, before there is a session or a stream."""
    if settings.placement not in ("pull", "delegated"):
        raise ValueError(f"placement must be 'pull' or 'delegated', got {settings.placement!r}")
    virtual_workers_of(
        settings.virtual_workers, tasks_per_worker, delegated=settings.placement == "delegated"
    )
    slot_length_of(settings.slot)
    if isinstance(settings.period, str):
        seconds_of("period", settings.period)
    else:
        require_whole("period", settings.period, least=1)
    if settings.window is not None:
        seconds_of("window", settings.window)
    if settings.slide is not None:
        seconds_of("slide", settings.slide)
    if settings.watermark is not None:
        seconds_of("watermark", settings.watermark, least=0)


def virtual_workers_of(given: int | None, tasks_per_worker: int, delegated: bool) -> int:
    """How many virtual workers each worker has at first: tasks, unless they are delegated."""
    if given is not None:
        require_whole("virtual_workers", given, least=1)
    if delegated:
        if tasks_per_worker != 1:
            raise ValueError("tasks_per_worker is for placement='pull'; give virtual_workers")
        return 100 if given is None else given
    if given is not None and tasks_per_worker != 1:
        raise ValueError("virtual_workers and tasks_per_worker are the same here; give one of them")
    return tasks_per_worker if given is None else given


def windows_of(frame: DataFrame, settings: StreamSettings) -> Windows | None:
    """The windows that are asked for, if any."""
    if settings.window is None:
        for name in ("slide", "watermark", "time"):
            if getattr(settings, name) is not None and not (
                name == "time" and isinstance(settings.period, str)
            ):
                raise ValueError(f"{name} needs a window")
        if settings.time is None:
            return None
    if settings.time is None:
        raise ValueError("window needs time, the column of event times")
    require_columns(frame, "time", [settings.time])
    require_time(frame, "time", settings.time)
    for column in frame.schema.fields:
        if WATERMARK in (column.metadata or {}):
            raise ValueError(
                f"the stream has a watermark on {column.name!r} already, which Python stages lose; "
                "leave it out and give watermark= here"
            )
    window = settings.window
    if window is None:
        return None
    length = seconds_of("window", window)
    if settings.slide is not None:
        ratio = length / seconds_of("slide", settings.slide)
        if ratio < 1 or ratio != round(ratio):
            raise ValueError(
                f"window must be a whole number of slides, got {window!r} and {settings.slide!r}"
            )
    if settings.watermark is not None:
        seconds_of("watermark", settings.watermark, least=0)
    return Windows(settings.time, window, settings.slide, settings.watermark)


def require_time(frame: DataFrame, argument: str, name: str) -> None:
    """Refuse a column that holds no moments."""
    kind = frame.schema[name].dataType
    if not isinstance(kind, TimestampType):
        found = kind.simpleString()
        raise ValueError(f"{argument}: column {name!r} must be a timestamp, got {found}")  # noqa: TRY004


def period_of(period: int | str, windows: Windows | None) -> Period:
    """So many micro-batches, or a length of event time."""
    if not isinstance(period, str):
        require_whole("period", period, least=1)
        return Period(batches=period)
    seconds = seconds_of("period", period)
    if windows is None:
        raise ValueError(
            "a period of event time needs time and window; or give a number of batches"
        )
    return Period(micros=round(seconds * 1e6))


def slot_length_of(slot: int | str) -> SlotLength:
    """So many micro-batches, or a length of time."""
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
            "placement='delegated' needs a control path: give control=, a folder that the driver "
            "and all executors see"
        )
    partitions = int(session.conf.get("spark.sql.shuffle.partitions") or 0)
    if partitions != workers:
        raise ValueError(
            f"each of {workers} workers needs a partition of state, and there are {partitions}: "
            f"set spark.sql.shuffle.partitions to {workers} before the query starts"
        )
    require_rocksdb(session, "workers that stay keep their state")
    warn_of_leaks(session, stacklevel=4)
    if (session.conf.get("spark.master") or "").startswith("local["):
        return  # one executor: wherever a worker's task runs, its state is there
    slots = parallelism(session)
    wait = session.conf.get("spark.locality.wait", "3s")
    if slots < workers and wait == "3s":
        warnings.warn(
            f"{workers} workers share {slots} slots of Spark's; with more than one executor set "
            "spark.locality.wait to longer than a micro-batch, or workers are moved about",
            stacklevel=4,
        )
