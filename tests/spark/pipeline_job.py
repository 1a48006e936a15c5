"""A Spark Declarative Pipeline with a balanced table, run on a Spark Connect server of its own.

The folder of the pipeline is the argument; the rows of each partition of the table are printed as
JSON. Spark's runner imports the same file as the definition of the pipeline.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ROWS, WORKERS = 6000, 4

SPECIFICATION = """
name: balanced
storage: {storage}
libraries:
  - glob:
      include: definitions/**
"""


def define():
    """Define the tables of the pipeline."""
    from pyspark import pipelines

    import steelyard as sy

    @pipelines.temporary_view
    def visits():
        hot = F.when(F.col("id") % 2 == 0, "hot")
        page = hot.otherwise(F.concat(F.lit("page "), (F.col("id") % 500).cast("string")))
        return SparkSession.active().range(ROWS).select(page.alias("page"), "id")

    @pipelines.materialized_view
    def balanced_visits():
        frame = SparkSession.active().read.table("visits")
        even = frame.transform(sy.balanced("page", workers=WORKERS, salt=["id"]))
        return even.withColumn("partition", F.spark_partition_id())


def run(folder):
    """Run the pipeline in a process of its own, and print the sizes of the partitions."""
    from conftest import SERVER, SETTINGS

    from tests.ports import free_port

    definitions = folder / "definitions"
    definitions.mkdir()
    text = "from tests.spark.pipeline_job import define\n\ndefine()\n"
    (definitions / "tables.py").write_text(text)
    (folder / "spark-pipeline.yml").write_text(
        SPECIFICATION.format(storage=(folder / "storage").as_uri())
    )
    port = free_port()
    builder = SparkSession.builder.master("local[2]").config(map=SETTINGS | SERVER)
    builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    server = builder.config("spark.connect.grpc.binding.port", port).getOrCreate()
    command = [sys.executable, "-m", "pyspark.pipelines.cli", "run"]
    subprocess.run(
        [*command, "--spec", str(folder / "spark-pipeline.yml")],
        check=True,
        stdout=sys.stderr,
        env=os.environ | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}"},
    )
    rows = server.read.table("balanced_visits").groupBy("partition")
    found = rows.agg(F.count("id"), F.sum("id"), F.count_distinct("page")).collect()
    print(json.dumps([list(row) for row in found]))  # noqa: T201
    server.stop()


if __name__ == "__main__":
    run(Path(sys.argv[1]))
