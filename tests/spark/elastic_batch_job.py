"""Batch work for `spark-submit`, on a cluster that loses an executor and gets another one.

`elastic_batch_job.py FOLDER` runs operations one after the other on the rows of FOLDER/in, and
writes their rows into FOLDER/out. Every task leaves a file in FOLDER/tasks that names its
operation, partition, attempt and executor, so that a test sees which tasks ran.
"""

import os
import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession

import steelyard as sy

WORKERS = 4
PATIENCE = 300
SCHEMA = "page string, id long"
LOST, JOINED = "127.0.0.2", "127.0.0.5"
"""The hosts of the executor that is lost and of the one that joins."""


class Noting:
    """Notes a task of an operation, and then waits for what the operation needs.

    Args:
        folder: The folder of the job.
        operation: Its name.
    """

    def __init__(self, folder, operation):
        self.folder, self.operation = folder, operation

    def __call__(self, table):
        """Return the rows of a worker unchanged."""
        task = TaskContext.get()
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        executor = status.split("PPid:")[1].split()[0]
        here = f"{self.operation}-{task.partitionId()}-"
        tasks = Path(self.folder, "tasks")
        Path(tasks, f"{here}{task.taskAttemptId()}-{executor}").touch()
        if self.operation == "copied" and self._is_first():
            self._wait(lambda: len(list(tasks.glob(f"{here}*"))) > 1)  # Spark starts a copy
        if self.operation == "exchanged":
            self._wait(Path(self.folder, "exchanged").exists)  # the first executor is lost
        return table

    def batches(self, batches):
        """Do the same for the rows of a partition."""
        for number, batch in enumerate(batches):
            yield self(batch) if number == 0 else batch

    def _is_first(self):
        try:
            Path(self.folder, "straggler").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _wait(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.1)


class NotedSum(sy.Sum):
    """A sum that notes where it runs."""

    def __init__(self, column, noting):
        super().__init__(column)
        self.noting = noting

    def add(self, batch, groups):
        """Add the values of a batch."""
        self.noting(batch)
        return super().add(batch, groups)


def hosts(spark):
    """Return the hosts of the executors, and of the driver."""
    addresses = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")
    return {address.split(":")[0] for address in addresses.split()}


def wait_for_the_new_host(spark):
    """Wait until one executor is gone and another one has joined."""
    deadline = time.monotonic() + PATIENCE
    while JOINED not in hosts(spark) or LOST in hosts(spark):
        assert time.monotonic() < deadline, "the executor of the new worker does not join"
        time.sleep(0.2)


def operations(rows, titles, folder):
    """Yield each operation and its rows."""

    def noting(operation):
        return Noting(folder, operation)

    grouped = sy.group_by(rows, "page", workers=WORKERS)
    yield "copied", grouped.map_arrow(noting("copied"), SCHEMA)
    yield "exchanged", grouped.map_arrow(noting("exchanged"), SCHEMA)
    wait_for_the_new_host(rows.sparkSession)
    yield "aggregate", grouped.aggregate(sy.Count(), NotedSum("id", noting("aggregate")))
    balanced = sy.repartition(rows, WORKERS, "page")
    yield "repartition", balanced.mapInArrow(noting("repartition").batches, SCHEMA)
    joined = sy.join(rows, titles, "page", workers=WORKERS).select("page", "id", "title")
    yield "join", joined.mapInArrow(noting("join").batches, f"{SCHEMA}, title string")


def main(folder):
    """Run all operations."""
    spark = SparkSession.builder.getOrCreate()
    rows = spark.read.schema(SCHEMA).parquet(f"{folder}/in")
    titles = rows.select("page").distinct().selectExpr("page", "concat('about ', page) AS title")
    for operation, made in operations(rows, titles, folder):
        made.write.parquet(f"{folder}/out/{operation}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
