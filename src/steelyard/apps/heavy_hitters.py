"""Find heavy hitters: the most frequent keys of every time window.

Messages enter, as a frame or as a stream; one row for each window leaves, with its frequent keys.
`trends` finds the trending keys in these rows.
"""

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

import steelyard as sy
from steelyard.apps.batch_or_stream import group
from steelyard.apps.trends import TrendSummary
from steelyard.spark.resolved_columns import column_named
from steelyard.validation import require_whole


def heavy_hitters(
    frame: DataFrame,
    key: str | Column,
    *,
    time: str,
    window: str,
    slide: str | None = None,
    capacity: int = 1000,
    workers: int,
    **grouping: Any,
) -> DataFrame:
    """Return the frequent keys of every window: `start`, `end`, `messages`, `hitters`.

    `hitters` is a list of (value, count, error) with up to `capacity` keys, the most frequent
    first. Each of these keys occurs at least `count` and at most `count + error` times. Any other
    key occurs at most `error` times. `error` is 0 while a window has no more than `capacity` keys,
    and never more than messages / (capacity + 1). Messages without a key or a time are left out.

    Rows are grouped by their window, which is a very hot key: at any time nearly all messages are
    of one window. It is split over all workers, and their summaries are merged. The results of a
    stream come in update mode; the row of a window with the most messages is the newest.

    Args:
        frame: The messages: a frame or a stream.
        key: The column, or the expression, whose frequent values are found.
        time: A timestamp column.
        window: The length of a window, such as "1 hour".
        slide: The time between the starts of two windows; the length of a window by default.
        capacity: The number of keys that are kept for each window.
        workers: The number of workers.
        grouping: Other arguments of `steelyard.group_by`, or of `steelyard.group_stream` for a
            stream, such as `control` and `placement`.

    Returns:
        One row for each window; from a stream, one row for each update of a window.

    Raises:
        ValueError: A column is missing, `time` is not a timestamp, or a setting is out of range.

    >>> rows = spark.range(900).selectExpr(
    ...     "if(id % 3 = 0, 'hot', string(id)) AS page", "timestamp_seconds(id) AS at")
    >>> found = heavy_hitters(rows, "page", time="at", window="10 minutes", capacity=20, workers=2)
    >>> first, second = summaries(found)
    >>> first.messages, first.top(1), first.share("hot").least <= 1 / 3 <= first.share("hot").most
    (600, ['hot'], True)
    """
    hitter = column_named(frame, "key", key) if isinstance(key, str) else key
    moment = column_named(frame, "time", time)
    kind = frame.select(moment).schema.fields[0].dataType
    if not isinstance(kind, TimestampType):
        found = kind.simpleString()
        raise ValueError(f"time: column {time!r} must be a timestamp, got {found}")  # noqa: TRY004
    require_whole("capacity", capacity, least=1)
    top = sy.TopK("hitter", k=capacity, capacity=capacity)
    spans = F.window(moment, window, slide)
    # The whole row is kept as the salt: it distinguishes rows of one window and key.
    rows = frame.where(hitter.isNotNull() & moment.isNotNull()).select(
        F.struct("*").alias("row"), hitter.alias("hitter"), spans.alias("window")
    )
    rows = rows.select("row", "hitter", "window.start", "window.end")
    grouped = group(rows, "start", "end", workers=workers, **grouping)
    return grouped.aggregate(sy.Count(), top).toDF("start", "end", "messages", "hitters")


def summaries(found: DataFrame) -> list[TrendSummary]:
    """Return the newest summary of each window, in order of time, for `trends.trending`.

    The output of a stream may have several rows for a window; this function collects one of them.
    """
    newest = F.max_by("hitters", "messages").alias("hitters")
    windows = found.groupBy("start", "end").agg(newest, F.max("messages").alias("messages"))
    return [
        TrendSummary(
            start=row["start"],
            end=row["end"],
            messages=row["messages"],
            counts={hitter["value"]: hitter["count"] for hitter in row["hitters"]},
            error=max((hitter["error"] for hitter in row["hitters"]), default=row["messages"]),
        )
        for row in windows.orderBy("start").collect()
    ]
