"""Group a frame that may be a stream.

A frame and its key enter; a grouped frame or a grouped stream leaves.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame

import steelyard as sy

if TYPE_CHECKING:
    from steelyard.spark.frame_grouping import GroupedFrame
    from steelyard.spark.streaming.grouped_stream import GroupedStream


def group(
    frame: DataFrame, *key: str | Column, workers: int, **grouping: Any
) -> "GroupedFrame | GroupedStream":
    """Call `group_stream` for a stream, `group_by` for any other frame.

    Args:
        frame: The rows to group.
        key: The columns of the key.
        workers: The number of workers.
        grouping: Other arguments of `group_stream` or `group_by`.

    Returns:
        The grouped frame or stream.
    """
    if frame.isStreaming:
        stream: GroupedStream = sy.group_stream(frame, *key, workers=workers, **grouping)
        return stream
    return sy.group_by(frame, *key, workers=workers, **grouping)
