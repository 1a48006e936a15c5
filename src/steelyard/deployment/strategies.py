"""The ways to group a stream of words: what a user would pick instead, and ours.

All of them send words through the same packed exchange to the same worker function, and have
partial counts merged by Spark: only where a message goes differs.
"""

from pathlib import Path

from pyspark.sql import DataFrame

from steelyard import schemes
from steelyard.deployment.emulated_machines import ByPartition, ByProcess, Place
from steelyard.plans import Planner
from steelyard.spark.grouped import Grouped
from steelyard.spark.grouping import group_by

TASKS = 6
"""Of a worker that is pulled from: so much finer can the fast ones take from the slow."""

_DEFAULT_PARTITIONS = 200


def grouped(way: str, words: DataFrame, workers: int, control: Path) -> Grouped:
    """The words, on their way to workers."""
    if way == "kg":
        # A plan that has seen nothing puts every key where its hash says.
        return group_by(words, "word", workers=workers, plan=Planner(workers).plan)
    if way == "kg-200":
        plan = Planner(_DEFAULT_PARTITIONS).plan
        return group_by(words, "word", workers=_DEFAULT_PARTITIONS, plan=plan)
    if way in ("sg", "pkg", "salting"):
        return group_by(words, "word", workers=workers, scheme=schemes.named(way))
    if way == "cg-pull":
        return group_by(words, "word", workers=workers, control=control, virtual_workers=TASKS)
    assert way == "cg-delegated"
    return group_by(words, "word", workers=workers, control=control, placement="delegated")


def place(way: str, folder: Path) -> Place:
    """Which machine a task is on: its worker's own, or that of whoever is free."""
    return ByProcess(str(folder)) if way in ("kg-200", "cg-pull") else ByPartition()


def placement(way: str) -> str:
    """Where workers are: at tasks that anybody takes, or where their state is."""
    return "delegated" if way == "cg-delegated" else "pull"
