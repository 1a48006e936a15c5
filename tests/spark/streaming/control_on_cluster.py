"""Streams on a small cluster whose control path is not shared, or is lost with an executor.

`python -m tests.spark.streaming.control_on_cluster FOLDER` runs every case on the files in
FOLDER/in and writes FOLDER/results.json: for each case the errors and the written rows. It is a
program of its own because a process has one Spark.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import steelyard as sy
from tests.spark.on_cluster import kill_my_executor, start
from tests.spark.streaming.job_on_cluster import SCHEMA, STREAMING, WORKERS
from tests.spark.streaming.placing import placed

UNSHARED = "/proc/self/cwd/control"
"""A path that each process resolves to another folder, its working directory."""

PLACEMENTS, WORK = ("pull", "delegated"), ("map_arrow", "aggregate")
STARTS = 5
"""Number of starts after which every case has finished; each start fails at most once."""


class Fatal:
    """Once a micro-batch is written, remove the control path and kill this executor, once."""

    def __init__(self, folder, control):
        self.folder, self.control = folder, control

    def __call__(self):
        killed = Path(self.folder, "killed")
        if killed.exists() or not any(Path(self.folder, "out").glob("batch=*")):
            return
        time.sleep(1)  # another worker of this micro-batch has finished by now
        try:
            killed.touch(exist_ok=False)
        except FileExistsError:
            return
        shutil.rmtree(self.control, ignore_errors=True)
        kill_my_executor()


class FatalCount(sy.Count):
    """A count that may kill its executor."""

    def __init__(self, fatal):
        super().__init__()
        self.fatal = fatal

    def add(self, batch, groups):
        """Count, or kill the executor."""
        self.fatal()
        return super().add(batch, groups)


def result(stream, placement, work, control, fatal):
    """Return a stream of the rows themselves, or of counts and sums by key."""
    grouped = sy.group_stream(
        stream, "page", workers=WORKERS, placement=placed(placement), control=control
    )
    if work == "aggregate":
        return grouped.aggregate(FatalCount(fatal), sy.Sum("id"))

    def function(table):
        fatal()
        return table

    return grouped.map_arrow(function, SCHEMA)


def run(spark, files, folder, placement, work, control):
    """Start the query until it succeeds; return its errors and the rows that it has written."""
    folder.mkdir(parents=True)
    fatal = Fatal(str(folder), control)
    errors = []
    for _ in range(STARTS):
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        # A retry may get the rows in another order.
        stream = reader.parquet(files).repartition(4)

        def write(batch, number):
            batch.write.mode("overwrite").parquet(f"{folder}/out/batch={number}")

        try:
            frame = result(stream, placement, work, control, fatal)
            writer = frame.writeStream.foreachBatch(write).trigger(availableNow=True)
            writer = writer.outputMode("append" if work == "map_arrow" else "update")
            writer.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
            break
        except Exception as error:  # noqa: BLE001  # Spark may wrap the error in any type
            errors.append(str(error))
            if control == UNSHARED:
                break
    batches = sorted(folder.glob("out/batch=*"))
    written = [list(row.values()) for path in batches for row in pq.read_table(path).to_pylist()]
    was_killed = (folder / "killed").exists()
    return {"errors": errors, "written": written, "was_killed": was_killed}


def main(where):
    """Run every case on one cluster."""
    os.chdir(where)  # the driver needs a working directory of its own, too
    # Spark needs its default of four attempts: a lost executor is one failure of a task, and its
    # state may not load in the next attempt.
    spark = start("local-cluster[3,1,1024]", **STREAMING)
    results = {}
    try:
        for placement in PLACEMENTS:
            for work in WORK:
                for case in ("unshared", "lost"):
                    folder = Path(where, placement, work, case)
                    control = UNSHARED if case == "unshared" else str(folder / "control")
                    results[f"{placement} {work} {case}"] = run(
                        spark, f"{where}/in", folder, placement, work, control
                    )
    finally:
        spark.stop()
    Path(where, "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
