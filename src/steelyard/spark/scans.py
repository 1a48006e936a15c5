"""Whether a frame's rows come in the same order when a task is run again."""

import re

from pyspark.sql import DataFrame

_REPEATING = {
    "ColumnarToRow",
    "FileScan",
    "Filter",
    "Generate",
    "LocalTableScan",
    "Project",
    "Range",
    "Sample",
    "Union",
}
"""Steps that give the same rows in the same order, whenever and wherever they are run again."""

_STEP = re.compile(r"[\s:]*(?:[+:]- )?(?:\*\(\d+\) )?(\w+)")


def repeats_its_order(frame: DataFrame) -> bool:
    """True for what is read straight from files, and filtered or computed row by row.

    Rows that came through a shuffle may come in another order, as may those of a source of somebody
    else's (`BatchScan`). What is not known is not trusted.

    >>> repeats_its_order(spark.range(10).selectExpr("id * 2 AS twice"))
    True
    >>> repeats_its_order(spark.range(10).repartition(2))
    False
    """
    explained = frame.sparkSession.sql("EXPLAIN SELECT * FROM {frame}", frame=frame).first()
    assert explained is not None
    lines = [line for line in explained[0].splitlines() if line.strip()]
    steps = [_STEP.match(line) for line in lines if not line.startswith("== ")]
    return bool(steps) and all(step is not None and step[1] in _REPEATING for step in steps)
