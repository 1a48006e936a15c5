"""Group a frame that may be a stream."""

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

import steelyard as sy

if TYPE_CHECKING:
    from steelyard.spark.frame_grouping import GroupedFrame
    from steelyard.spark.streaming.grouped_stream import GroupedStream


def group(
    frame: DataFrame, *key: str, workers: int, **grouping: Any
) -> "GroupedFrame | GroupedStream":
    """Call `group_stream` for a stream, `group_by` for any other frame."""
    if frame.isStreaming:
        return sy.group_stream(frame, *key, workers=workers, **grouping)
    return sy.group_by(frame, *key, workers=workers, **grouping)
