"""Calls, classes and settings that some versions of Spark lack or name differently."""

import logging
from typing import Any

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.spark.versions.supported import parsed, version_of

try:
    from pyspark.sql.streaming import stateful_processor
except ImportError:  # Spark 3.5
    StatefulProcessor: Any = object
else:
    StatefulProcessor = stateful_processor.StatefulProcessor

_CHECKPOINTING = ".checkpointing" if parsed(pyspark.__version__) >= (4, 1) else ""

CHECKPOINT_FILE_MANAGER = (
    f"org.apache.spark.sql.execution.streaming{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
)
"""The Java class that writes checkpoints to a local disk, for a session of this PySpark."""


def kafka_connector() -> str:
    """Return the Maven package of Spark's connector to Kafka, for `spark.jars.packages`.

    PySpark 3.5 contains a Spark for Scala 2.12, later versions contain one for Scala 2.13.
    """
    scala = "2.12" if parsed(pyspark.__version__) < (4, 0) else "2.13"
    return f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{pyspark.__version__}"


def tried_cast(column: str, kind: str) -> Column:
    """Return an expression in another type, null where that is not possible.

    Args:
        column: The expression, in SQL.
        kind: The type, in SQL.
    """
    return F.expr(f"try_cast({column} AS {kind})")


def position_in(array: Column, value: Column) -> Column:
    """Return the position of a value in an array, from 1; 0 if it is not there."""
    # Before Spark 4.0, `F.array_position` accepts no column as the value.
    return F.call_function("array_position", array, value)


def end_observation(frame: DataFrame) -> None:
    """Run an action on an observed frame that starts no job and observes no rows.

    The observation of the frame ends, unless an action has ended it already.
    """
    session = frame.sparkSession
    if version_of(session) != (4, 0):
        frame.limit(0).collect()
        return
    # In Spark 4.0 an observation ends only if the optimized query still contains it, which
    # `limit(0)` removes. Without adaptive execution, `tail(0)` starts no job for earlier stages.
    before = str(session.conf.get(_ADAPTIVE))
    session.conf.set(_ADAPTIVE, "false")
    try:
        frame.tail(0)
    finally:
        session.conf.set(_ADAPTIVE, before)


_ADAPTIVE = "spark.sql.adaptive.enabled"


_TAGS = (4, 0)
"""The first version with tags on classic sessions, and not only on Spark Connect."""


def add_tag(session: SparkSession, tag: str) -> None:
    """Add a tag to the jobs that this thread starts."""
    if version_of(session) >= _TAGS:
        session.addTag(tag)
    else:
        session.sparkContext.addJobTag(tag)


def interrupt_tag(session: SparkSession, tag: str) -> None:
    """Cancel the jobs with a tag."""
    if version_of(session) >= _TAGS:
        session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def stop_logging_errors() -> None:
    """Stop PySpark from logging each error of a query as JSON; Spark 3.5 never does."""
    try:
        from pyspark.logger import PySparkLogger  # Spark 4.0
    except ImportError:
        return
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
