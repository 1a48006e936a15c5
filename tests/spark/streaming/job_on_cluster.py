"""A query that counts rows while an executor or the driver is killed.

`python -m tests.spark.streaming.job_on_cluster PLACEMENT KILL MERGED CONTROL FOLDER` counts the
rows in FOLDER/in into FOLDER/out, from the checkpoint if there is one. MERGED is `spark` or
`python`, which merges partial states. CONTROL is the control path. It is a program of its own
because a process has one Spark, and because tests kill it.
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
    """A slow count that kills its executor once, in the second micro-batch.

    Before that it publishes a version in which every virtual worker has another owner. Retries of
    tasks must not follow this version.
    """

    def __init__(self, folder, control, kill):
        super().__init__()
        self.folder, self.control, self.kill = folder, control, kill

    def add(self, batch, groups):
        """Count after a while, or kill the executor."""
        time.sleep(0.2)
        if self.kill and len(list(Path(self.folder, "out").glob("batch=*"))) >= 1:
            # Another worker of this micro-batch has finished by now: there are more workers than
            # task slots.
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
    # One of three executors is killed, so that two are left in both cases.
    executors = 3 if kill == "executor" else 2
    spark = start(f"local-cluster[{executors},1,1024]", **STREAMING)
    try:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        stream = reader.parquet(f"{folder}/in")
        if kill == "executor":
            # A retry may get the rows in another order.
            stream = stream.repartition(4)
        grouped = sy.group_stream(
            stream,
            "page",
            workers=WORKERS,
            # Delegated workers hold partial states while executors are killed.
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
