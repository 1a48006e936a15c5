"""Generate data sets on Spark, in parallel by message number, and write them as Parquet.

A data set enters; a DataFrame of its messages leaves, the same for any number of partitions.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from steelyard.datasets import Dataset

SCHEMA = "message long, time double, key string"


def messages(spark: SparkSession, dataset: Dataset, partitions: int | None = None) -> DataFrame:
    """Return the messages of a data set: their numbers from 0, seconds since the start, and keys.

    >>> from steelyard import datasets
    >>> messages(spark, datasets.named("wp", fraction=1e-5), partitions=3).count()
    220
    """
    numbers = spark.range(0, dataset.messages, 1, partitions)

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for run in _runs(batch.column(0).to_numpy()):
                part = dataset.part(int(run[0]), run.size)
                columns = [pa.array(run), pa.array(part.times), dataset.key_names(part.keys)]
                yield pa.RecordBatch.from_arrays(columns, ["message", "time", "key"])

    return numbers.mapInArrow(make, SCHEMA)


def write(spark: SparkSession, dataset: Dataset, path: str, partitions: int | None = None) -> None:
    """Write the messages of a data set to a new folder of Parquet files.

    Args:
        spark: The session.
        dataset: The data set.
        path: The folder; it must not exist.
        partitions: The number of files; Spark's default parallelism by default.

    Raises:
        AnalysisException: The folder exists.

    >>> from steelyard import datasets
    >>> write(spark, datasets.named("zf", fraction=1e-5), f"{folder}/zf")
    >>> spark.read.parquet(f"{folder}/zf").count()
    100
    """
    messages(spark, dataset, partitions).write.mode("error").parquet(path)


def _runs(numbers: np.ndarray) -> list[np.ndarray]:
    """Split the numbers into runs of consecutive numbers."""
    return np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
