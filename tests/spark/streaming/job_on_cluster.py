"""A stream that is counted while executors, the driver or control files are taken away.

`python -m tests.spark.streaming.job_on_cluster PLACEMENT KILL MERGED CONTROL FOLDER` counts the
files in FOLDER/in into FOLDER/out, from the checkpoint if there is one; MERGED says where partial
results meet, in spark or in python, and CONTROL is the control path. It is a
program of its own because a process has one Spark, and because it is killed.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

import steelyard as sy
from steelyard.control.store import ControlStore
from steelyard.control.version import ControlVersion
from steelyard.spark.session import STATE_IN_ROCKSDB
from tests.spark.on_cluster import kill_my_executor, start
from tests.spark.streaming.placing import placed

WORKERS, FILES, EACH = 3, 4, 2000
SCHEMA = "page string, id long"


class FatalCount(sy.Count):
    """A count that takes its time, and in the second micro-batch takes its executor down, once.

    Before that it publishes a version in which every virtual worker has another owner: the tasks
    that are run again must not follow it.
    """

    def __init__(self, folder, control, kill):
        super().__init__()
        self.folder, self.control, self.kill = folder, control, kill

    def add(self, batch, groups):
        """Slowly, and perhaps fatally."""
        time.sleep(0.2)
        if self.kill and len(list(Path(self.folder, "out").glob("batch=*"))) >= 1:
            # Another worker of this micro-batch is done by now, as there are more of them than
            # executors that could run at once after this one.
            time.sleep(1)
            try:
                Path(self.folder, "killed").touch(exist_ok=False)
            except FileExistsError:
                return super().add(batch, groups)
            store = ControlStore(self.control)
            version = store.newest()
            owners = np.roll(version.owners, 1)
            store.publish(ControlVersion(store.latest() + 1, version.plan, owners))
            kill_my_executor()
        return super().add(batch, groups)


ROOT = Path(__file__).parents[3]
STREAMING = {
    "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
    "spark.locality.wait": "1s",
    "spark.sql.shuffle.partitions": str(WORKERS),
    **STATE_IN_ROCKSDB,
}


def main(placement, kill, merged, control, folder):
    """Count until all files are read."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # One executor more than are left when one is killed.
    executors = 3 if kill == "executor" else 2
    spark = start(f"local-cluster[{executors},1,1024]", **STREAMING)
    try:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(f"{folder}/in")
        if kill == "executor":
            # Rows in an order that a second try need not repeat.
            stream = stream.repartition(4)
        grouped = sy.group_stream(
            stream,
            "page",
            workers=WORKERS,
            # Workers that stay hold partial results over the deaths.
            placement=placed(placement, period=2),
            control=control,
        )
        more = [sy.Variance("id")] if merged == "python" else []
        counts = grouped.aggregate(
            FatalCount(folder, control, kill == "executor"), sy.Sum("id"), *more
        )

        def write(batch, number):
            batch.write.mode("overwrite").parquet(f"{folder}/out/batch={number}")

        writer = counts.writeStream.outputMode("update").foreachBatch(write)
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    finally:
        spark.stop()
    Path(folder, "finished").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
