"""Write partitioned tables without giant files.

A frame and its partition columns enter; a writer leaves whose files have about the requested
number of rows, or fewer.
"""

from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter

import steelyard as sy
from steelyard.validation import require_whole


def partitioned(
    frame: DataFrame, *columns: str, rows_per_file: int, **repartitioning: Any
) -> DataFrameWriter:
    """Return `frame.write.partitionBy(*columns)` with at most about `rows_per_file` rows per file.

    A partition with few rows is one file. A partition with many rows is several files, which
    several tasks write at the same time. The rows are counted first.

    Args:
        frame: The rows to write; not a stream.
        columns: The partition columns.
        rows_per_file: The largest number of rows of a file, approximately.
        repartitioning: Other arguments of `steelyard.repartition`, such as `salt`.

    Returns:
        A writer of Spark; choose the mode, the format and the options on it.

    Raises:
        ValueError: `rows_per_file` is less than 1, or a column is missing or unsuitable.

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
