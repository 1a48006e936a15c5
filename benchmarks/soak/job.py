"""The stream of the soak: `python -m benchmarks.soak.job PLACEMENT FOLDER MASTER FILES CONTROL`.

It counts FOLDER/in into FOLDER/out, from its checkpoint if there is one. It ends when FOLDER/last
has the number of files and all of them are read. A micro-batch has at most FILES files. CONTROL is
the control path, or empty. It is a program of its own because the soak kills it.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

import steelyard as sy
from steelyard.spark.session import STATE_IN_ROCKSDB, session

WORKERS = 2
MORE = {
    **STATE_IN_ROCKSDB,
    "spark.sql.shuffle.partitions": str(WORKERS),
    "spark.task.maxFailures": "20",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.locality.wait": "1s",
    "spark.log.level": "OFF",
    "spark.driver.memory": "1g",
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
}


def main(placement: str, given: str, master: str, files: str, control: str) -> None:
    folder = Path(given)
    with session("steelyard soak", master, MORE) as spark:
        reader = spark.readStream.schema("page string, id long").option("maxFilesPerTrigger", files)
        grouped = sy.group_stream(
            reader.parquet(str(folder / "in")),
            "page",
            workers=WORKERS,
            placement=sy.Delegated() if placement == "delegated" else sy.Pull(),
            control=control or None,
        )

        def write(batch: DataFrame, number: int) -> None:
            batch.write.mode("overwrite").parquet(str(folder / "out" / f"batch={number}"))

        counts = grouped.aggregate(sy.Count(), sy.Sum("id"))
        writer = counts.writeStream.outputMode("update").foreachBatch(write)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        while query.isActive and not _is_done(folder):
            time.sleep(0.2)
        query.stop()
        failed = query.exception()
    if failed is not None:
        raise SystemExit(str(failed)[:2000])


def _is_done(folder: Path) -> bool:
    """Whether all files are in committed micro-batches, by Spark's logs in the checkpoint."""
    last, checkpoint = folder / "last", folder / "checkpoint"
    if not last.exists() or (newest := _newest(checkpoint / "commits")) < 0:
        return False
    # Spark logs the files before it begins a micro-batch with them.
    (source,) = (checkpoint / "offsets" / str(newest)).read_text().splitlines()[2:]
    entries = (checkpoint / "sources" / "0").glob("[0-9]*")
    done = [e for e in entries if int(e.name.split(".")[0]) <= json.loads(source)["logOffset"]]
    lines = [line for entry in done for line in entry.read_text().splitlines()]
    read = {line.split('"path":"')[1].split('"')[0] for line in lines if '"path":"' in line}
    return len(read) == int(last.read_text())


def _newest(log: Path) -> int:
    return max(
        (int(entry.name) for entry in log.glob("[0-9]*") if entry.name.isdecimal()), default=-1
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
