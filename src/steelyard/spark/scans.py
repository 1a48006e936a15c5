"""What is the same when a task is run again: the order of a frame's rows, and what is in them."""

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout

from pyspark.sql import DataFrame

from steelyard.spark.columns import named

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

_BY_POSITION = re.compile(
    r"\b(monotonically_increasing_id|rand|randn|randstr|uniform|uuid|shuffle|spark_partition_id)\("
)
"""Functions whose value depends on where in which partition a row is."""

_STREAM = re.compile(r"StreamingRelation(?= (FileSource\[|kafka\b|rate\b|rate-micro-batch\b))")

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
    return _keeps_order(_explained(frame))


def require_settled(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse columns to tell rows apart by that are made from a row's position behind a shuffle.

    A row would go elsewhere when a task is run again: some rows twice, others never.
    """
    plan = _explained(frame.select(*map(named, names)))
    made = _BY_POSITION.search(plan)
    if made is not None and not _keeps_order(plan):
        raise ValueError(
            f"rows of a hot key are told apart by {', '.join(names)}, made with {made[1]} behind a "
            "shuffle: that would be another when a task is run again, and rows would be lost; "
            "name other columns with salt=, or write the frame to files first"
        )


def _explained(frame: DataFrame) -> str:
    if frame.isStreaming:  # Spark explains these only to people
        printed = io.StringIO()
        with redirect_stdout(printed):
            frame.explain()
        # Files, Kafka and the rate source give the same rows in the same order again.
        return _STREAM.sub("FileScan", printed.getvalue())
    explained = frame.sparkSession.sql("EXPLAIN SELECT * FROM {frame}", frame=frame).first()
    assert explained is not None
    return str(explained[0])


def _keeps_order(plan: str) -> bool:
    lines = [line for line in plan.splitlines() if line.strip()]
    steps = [_STEP.match(line) for line in lines if not line.startswith("== ")]
    return bool(steps) and all(step is not None and step[1] in _REPEATING for step in steps)
