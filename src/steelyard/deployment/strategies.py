"""The ways to group a stream of words: what a user would pick instead, and ours.

All of them send words through the same packed exchange to the same worker function, and have
partial counts merged by Spark: only where a message goes differs.
"""

from pathlib import Path

from pyspark.sql import DataFrame

from steelyard import schemes
from steelyard.deployment.emulated_machines import ByPartition, ByProcess, Place
from steelyard.placements import Delegated, Pull
from steelyard.plans import Planner
from steelyard.spark.streaming.grouped_stream import GroupedStream
from steelyard.spark.streaming.stream_grouping import group_stream

TASKS = 6
"""Of a worker that is pulled from: so much finer can the fast ones take from the slow."""

_DEFAULT_PARTITIONS = 200


def grouped(way: str, words: DataFrame, workers: int, control: Path) -> GroupedStream:
    """The words, on their way to workers."""
    if way == "kg":
        # A plan that has seen nothing puts every key where its hash says.
        return group_stream(words, "word", workers=workers, routing=Planner(workers).plan)
    if way == "kg-200":
        plan = Planner(_DEFAULT_PARTITIONS).plan
        return group_stream(words, "word", workers=_DEFAULT_PARTITIONS, routing=plan)
    if way in ("sg", "pkg", "salting"):
        return group_stream(words, "word", workers=workers, routing=schemes.named(way))
    if way == "cg-pull":
        pull = Pull(tasks_per_worker=TASKS)
        return group_stream(words, "word", workers=workers, placement=pull, control=control)
    assert way == "cg-delegated"
    return group_stream(words, "word", workers=workers, placement=Delegated(), control=control)


def place(way: str, folder: Path) -> Place:
    """Which machine a task is on: its worker's own, or that of whoever is free."""
    return ByProcess(str(folder)) if way in ("kg-200", "cg-pull") else ByPartition()


def placement(way: str) -> str:
    """Where workers are: at tasks that anybody takes, or where their state is."""
    return "delegated" if way == "cg-delegated" else "pull"
