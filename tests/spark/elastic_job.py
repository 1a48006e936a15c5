"""A stream for `spark-submit`, on a cluster whose executors come and go.

`elastic_job.py PLACEMENT SCENARIO FOLDER` counts the files in FOLDER/in, one in each micro-batch,
into FOLDER/out. Every call of its aggregator leaves a file in FOLDER/calls that names the
micro-batch, the partition, the attempt and the executor, so that a test sees which tasks ran.
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


class NotedSum(sy.Sum):
    """A sum that notes where it runs, and in one task waits for a copy of it if `straggles`."""

    def __init__(self, column, folder, *, straggles):
        super().__init__(column)
        self.folder, self.straggles = folder, straggles

    def add(self, batch, groups):
        """Add slowly."""
        task = TaskContext.get()
        number = task.getLocalProperty("streaming.sql.batchId")
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        executor = status.split("PPid:")[1].split()[0]
        name = f"{number}-{task.partitionId()}-{task.taskAttemptId()}-{executor}"
        Path(self.folder, "calls", name).touch()
        if self.straggles and number == "2" and self._is_first():
            self._wait_for_a_copy(f"{number}-{task.partitionId()}-")
        time.sleep(0.2)
        return super().add(batch, groups)

    def _wait_for_a_copy(self, task):
        """Work on until Spark has started another attempt of this task."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            calls = Path(self.folder, "calls").glob(f"{task}*")
            if len({call.name.split("-")[2] for call in calls}) > 1:
                return
            time.sleep(0.1)

    def _is_first(self):
        try:
            Path(self.folder, "straggler").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def hosts(spark):
    """Return the hosts of the executors, and of the driver."""
    addresses = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().keySet().mkString(" ")
    return {address.split(":")[0] for address in addresses.split()}


def wait_for(condition):
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the executors of the new worker do not join"
        time.sleep(0.2)


def main(placement, scenario, folder):
    """Count until all files are read."""
    spark = SparkSession.builder.getOrCreate()
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    placed = sy.Delegated() if placement == "delegated" else sy.Pull()
    grouped = sy.group_stream(
        reader.parquet(f"{folder}/in"),
        "page",
        workers=WORKERS,
        placement=placed,
        control=f"{folder}/control",
    )
    counts = grouped.aggregate(
        sy.Count(), NotedSum("id", folder, straggles=scenario == "speculation")
    )

    def write(batch, number):
        batch.write.mode("overwrite").parquet(f"{folder}/out/batch={number}")
        if scenario == "dynamic":
            time.sleep(4)  # longer than executors may be idle
        if scenario == "exchange" and number == 2:
            wait_for(lambda: "127.0.0.4" in hosts(spark) and "127.0.0.2" not in hosts(spark))

    writer = counts.writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
