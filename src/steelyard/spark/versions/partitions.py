"""Send rows to partitions by number, also where Spark itself can only hash.

A frame and the number of each row's partition enter; the frame in these partitions leaves.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, StructType

from steelyard.spark.hashed_partitions import completion, label_of
from steelyard.spark.versions.supported import PARTITION_IDS, version_of


def to_partitions(frame: DataFrame, partitions: int, partition: Column) -> DataFrame:
    """Send every row to the partition whose number an expression gives.

    Args:
        frame: The rows.
        partitions: The number of partitions.
        partition: The number of the row's partition, from 0; never null.

    Returns:
        The same rows in `partitions` partitions.
    """
    if version_of(frame.sparkSession) >= PARTITION_IDS:
        return frame.repartitionById(partitions, partition)
    return frame.repartition(partitions, label_of(partition, partitions))


def to_joined_partitions(
    frame: DataFrame, partitions: int, partition: str, keys: Sequence[Column]
) -> DataFrame:
    """Send every row to a partition where a join by this column and by the keys leaves it.

    Before Spark 4.1, a join leaves rows in their partitions only if all its columns decide about
    them. The column then gets, in place of the number, an integer that stands for the number and
    completes the hash of the key.

    Args:
        frame: The rows.
        partitions: The number of partitions.
        partition: The column with the number of the row's partition, from 0.
        keys: The other columns of the join.

    Returns:
        The same rows; the column `partition` may have other values, equal for equal numbers of
        equal keys.
    """
    number = F.col(partition)
    has_ids = version_of(frame.sparkSession) >= PARTITION_IDS
    if not has_ids:
        number = completion(list(keys), number, partitions)
    # The number is never null. The coalesce makes this known to Spark, which otherwise computes
    # each number twice: once to check for nulls.
    frame = frame.withColumn(partition, F.coalesce(number, F.lit(0)))
    if has_ids:
        # Spark shuffles again under its internal setting requireAllClusterKeysForDistribution.
        return frame.repartitionById(partitions, F.col(partition))
    return frame.repartition(partitions, *keys, F.col(partition))


def can_join_in_place(session: SparkSession, keys: Sequence[DataType]) -> bool:
    """Whether a join by keys of these types leaves rows where `to_joined_partitions` sends them.

    Spark normalizes floating-point numbers before a join compares them. Before Spark 4.1 it then
    does not see that the rows are partitioned by these keys, and shuffles them again.
    """
    return version_of(session) >= PARTITION_IDS or not any(map(_has_floats, keys))


def _has_floats(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_floats(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_floats(field.dataType) for field in kind.fields)
    return isinstance(kind, FloatType | DoubleType)
