"""The place of a task in a Spark job: the only module of this package that asks Spark.

Spark's task context enters; the query, the micro-batch and the number of the task leave.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark import TaskContext


class MicroBatch(NamedTuple):
    """The place of a task in a streaming query."""

    query: str
    batch: int
    task: int


def micro_batch() -> MicroBatch:
    """Return the query, the micro-batch and the number of the current task."""
    context = _context()
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    if query is None or batch is None:
        raise RuntimeError(
            "this task belongs to no micro-batch: through Spark Connect, foreachBatch computes the "
            "results of group_stream outside the query, so write them to another sink"
        )
    return MicroBatch(query, int(batch), context.partitionId())


def partition() -> int:
    """Return the number of the partition of the current task."""
    return _context().partitionId()


def _context() -> "TaskContext":
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this code works only inside a task of a Spark job")
    return context
