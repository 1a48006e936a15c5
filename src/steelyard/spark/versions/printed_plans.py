"""Keep large constants out of the plans that Spark prints.

Integers enter; a column leaves whose values EXPLAIN, the web UI and event logs do not print.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.spark.versions.supported import SUBQUERIES, is_of_connect, version_of


def unprinted_array(session: SparkSession, values: NDArray[np.integer]) -> Column:
    """Return a constant array: the only row of a subquery on a local relation.

    Spark reads the row once in each query, without a job, and prints only its type.

    Args:
        session: The session in which the column is used.
        values: The integers.

    >>> column = unprinted_array(spark, np.arange(3, dtype=np.int64))
    >>> spark.range(1).select(column.alias("numbers")).first()
    Row(numbers=[0, 1, 2])
    """
    if is_of_connect(session) or version_of(session) < SUBQUERIES:
        return _parsed(values)
    numbers = pa.array(values)
    kind = pa.list_(pa.field("item", numbers.type, nullable=False))
    row = pa.ListArray.from_arrays(pa.array([0, values.size], pa.int32()), numbers, type=kind)
    return _local_frame(session, pa.table({"numbers": row})).scalar()


def _local_frame(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a frame of a table; the active session of the thread stays the same.

    `createDataFrame` makes its own session the active one. In `foreachBatch` the session of a batch
    is a copy that lists no queries, but the active session lists them.
    """
    active = SparkSession.getActiveSession()
    frame = session.createDataFrame(table)
    if active is not None and active is not session:
        active.createDataFrame([], "nothing int")
    return frame


def _parsed(values: NDArray[np.integer]) -> Column:
    """Return the subquery as SQL, of which Spark prints the text only before it is analyzed.

    Through Spark Connect, `repartitionById` cannot use the subqueries of `DataFrame.scalar`.
    """
    text = ",".join(map(str, values.tolist()))
    kind = "BIGINT" if values.dtype == np.int64 else "INT"
    numbers = f"CAST(split(numbers, ',') AS ARRAY<{kind}>)"
    return F.expr(f"(SELECT {numbers} FROM VALUES ('{text}') AS constant(numbers))")  # noqa: S608  # digits
