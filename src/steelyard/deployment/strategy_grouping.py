"""Group a stream with one of the compared strategies.

All strategies use the same packed exchange, the same worker function and the same merge of partial
counts. They differ only in the worker that gets a message.
"""

from pathlib import Path

from pyspark.sql import DataFrame

from steelyard.deployment.deployed_strategies import DeployedStrategy
from steelyard.spark.streaming.grouped_stream import GroupedStream
from steelyard.spark.streaming.stream_grouping import group_stream


def group_with(
    strategy: DeployedStrategy,
    stream: DataFrame,
    key: str,
    *,
    workers: int,
    control: Path,
    arrived: str | None = None,
) -> GroupedStream:
    """Group a stream by a key with a strategy.

    Args:
        strategy: The grouping strategy.
        stream: The rows to group.
        key: The column of the key.
        workers: The number of workers.
        control: The control path, for a strategy that learns; others do not use it.
        arrived: A column of times from which latencies are measured; Kafka's by default.
    """
    partitions = strategy.partitions or workers
    return group_stream(
        stream,
        key,
        workers=partitions,
        placement=strategy.placement,
        control=control if strategy.learns else None,
        routing=strategy.routing(partitions),
        arrived=arrived,
    )
