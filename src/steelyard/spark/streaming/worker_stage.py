"""The workers of a stream as stages of a Spark query.

Blocks of rows enter, each with its bin; results or partial states leave, with a column of reports.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from steelyard.executor import worker_output
from steelyard.executor.merging_worker import Merging
from steelyard.executor.pulled_worker import Pulled
from steelyard.executor.stateful_worker import StatefulWorker
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker import Worker
from steelyard.executor.worker_output import REPORT, Unpacked
from steelyard.spark.arrow_types import spark_schema
from steelyard.spark.columns import named
from steelyard.spark.hashed_partitions import label_of
from steelyard.spark.shipping import shipped
from steelyard.spark.streaming.hidden_columns import WATERMARK
from steelyard.spark.streaming.processors import stateful
from steelyard.spark.streaming.state_schema import definition_word
from steelyard.spark.versions.partitions import to_partitions

BLOCKS = spark_schema(worker_output.BLOCKS)
"""Rows of a bin and a block, in Spark's types."""


def in_any_task(
    sent: DataFrame, bins: int, work: tuple[Worker, pa.Schema, Stopwatch], kinds: StructType
) -> DataFrame:
    """Run every bin as a task in any free task slot.

    Args:
        sent: The blocks, with their bins.
        bins: The number of bins.
        work: The worker, the Arrow schema of its output, and the settings for measuring it.
        kinds: The schema of the output in Spark's types.

    Returns:
        The output of the workers, with a column for reports.
    """
    at_workers = to_partitions(sent.select("bin", "block"), bins, F.col("bin")).select("block")
    return at_workers.mapInArrow(shipped(Pulled(*work)), with_report(kinds))


def where_state_is(
    sent: DataFrame, workers: int, worker: StatefulWorker, kinds: StructType
) -> DataFrame:
    """Run every worker as a partition of Spark's state store, which stays on one executor.

    Args:
        sent: The blocks, with their bins and the latest event time.
        workers: The number of workers.
        worker: The worker, as a function of its state.
        kinds: The schema of the output in Spark's types.

    Returns:
        The output of the workers, with a column for reports.
    """
    label = label_of(F.col("bin"), workers).alias("label")
    labeled = sent.select(label, "bin", "block", "latest")
    return labeled.groupBy("label").transformWithStateInPandas(
        stateful(worker), with_report(kinds), "Update", "None"
    )


def merged_by_bin(blocks: DataFrame, merging: Merging) -> DataFrame:
    """Merge the partial states of each shard; the bin of a block is its shard.

    The key of the state is the bin, under a name that has the definition of the query.
    """
    name = definition_word(merging.definition)
    by_bin = blocks.select("bin", "block", F.col("bin").alias(name)).groupBy(named(name))
    return by_bin.transformWithStateInPandas(
        stateful(merging), with_report(BLOCKS), "Update", "None"
    )


def unpacked(
    blocks: DataFrame, types: Sequence[pa.DataType], fields: Sequence[StructField]
) -> DataFrame:
    """Return the rows of blocks as columns of Spark.

    Args:
        blocks: Rows with a block each.
        types: The Arrow types of the columns in the blocks.
        fields: The names, types and metadata of the columns in Spark.
    """
    numbered = [StructField(f"c{i}", field.dataType) for i, field in enumerate(fields)]
    schema = pa.schema([(f"c{i}", kind) for i, kind in enumerate(types)])
    unpack = shipped(Unpacked(schema))
    rows = blocks.select("block").mapInArrow(unpack, StructType(numbered))
    return rows.select(*map(as_field, rows.columns, fields))


def as_field(column: str, field: StructField) -> Column:
    """Rename a column to a field, and give it the metadata of the field without a watermark."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != WATERMARK}
    return F.col(column).alias(field.name, metadata=metadata)


def with_report(kinds: StructType) -> StructType:
    """Return the schema with a column for reports."""
    fields = [StructField(field.name, field.dataType) for field in kinds.fields]
    return StructType([*fields, StructField(REPORT, StringType())])
