"""Partitioned writes without giant files.

A frame and its partition columns enter; a writer leaves whose files have about as many rows as
were asked for, or fewer.
"""

from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter

import steelyard as sy
from steelyard.validation import require_whole


def partitioned(
    frame: DataFrame, *columns: str, rows_per_file: int, **repartitioning: Any
) -> DataFrameWriter:
    """`frame.write.partitionBy(*columns)`, with files of about `rows_per_file` rows at most.

    A partition with few rows is one file. One with many is several files, written by several tasks
    at once: neither one giant file nor a small one from every task. The rows are counted first.

    `repartitioning` are other arguments of `steelyard.repartition`, such as `salt`.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 0, id % 50) AS day", "id")
    >>> partitioned(rows, "day", rows_per_file=1000).parquet(f"{folder}/days")
    >>> from pyspark.sql import functions as F
    >>> files = spark.read.parquet(f"{folder}/days").groupBy("day", F.input_file_name()).count()
    >>> files.where("day = 0").count(), bool(files.agg(F.max("count")).first()[0] < 1100)
    (5, True)
    """
    require_whole("rows_per_file", rows_per_file, least=1)
    tasks = max(1, -(-frame.count() // rows_per_file))
    enough = sy.Balance(buckets=max(8192, 4 * tasks))
    balanced = sy.repartition(frame, tasks, *columns, **{"routing": enough, **repartitioning})
    return balanced.write.partitionBy(*columns)
