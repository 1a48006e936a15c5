"""The grouping strategies that are compared: what a user would pick instead, and ours.

All of them send words through the same packed exchange to the same worker function, and have
partial counts merged by Spark: only where a message goes differs.
"""

from pathlib import Path

from pyspark.sql import DataFrame

from steelyard import schemes
from steelyard.deployment.emulated_machines import ByPartition, ByProcess, MachineOfTask
from steelyard.placements import Delegated, Pull
from steelyard.plans import Planner
from steelyard.spark.streaming.grouped_stream import GroupedStream
from steelyard.spark.streaming.stream_grouping import group_stream

TASKS = 6
"""Tasks of a worker under pull placement, so that fast executors take more of them."""

_DEFAULT_PARTITIONS = 200


def group_words(strategy: str, words: DataFrame, workers: int, control: Path) -> GroupedStream:
    """Group the words with a strategy."""
    if strategy == "kg":
        # A plan that has seen nothing puts every key where its hash says.
        return group_stream(words, "word", workers=workers, routing=Planner(workers).plan)
    if strategy == "kg-200":
        plan = Planner(_DEFAULT_PARTITIONS).plan
        return group_stream(words, "word", workers=_DEFAULT_PARTITIONS, routing=plan)
    if strategy in ("sg", "pkg", "salting"):
        return group_stream(words, "word", workers=workers, routing=schemes.named(strategy))
    if strategy == "cg-pull":
        pull = Pull(tasks_per_worker=TASKS)
        return group_stream(words, "word", workers=workers, placement=pull, control=control)
    assert strategy == "cg-delegated"
    return group_stream(words, "word", workers=workers, placement=Delegated(), control=control)


def machine_of_task(strategy: str, folder: Path) -> MachineOfTask:
    """Select how a task finds its machine: that of its worker, or that of its process."""
    return ByProcess(str(folder)) if strategy in ("kg-200", "cg-pull") else ByPartition()


def placement(strategy: str) -> str:
    """Name the placement: tasks that any executor takes, or workers that stay at their state."""
    return "delegated" if strategy == "cg-delegated" else "pull"
