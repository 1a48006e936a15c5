"""All differences between the versions of Spark; no other package asks for a version.

A call that some versions lack enters; what every supported version can do leaves. What a version
cannot do is refused in one sentence that names the version needed.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructField,
    StructType,
)

from steelyard.spark.hashed_partitions import completion, label_of

OLDEST = (3, 5)
"""The oldest version of Spark that Steelyard supports."""

STREAMS = (4, 0)
"""The first version with `group_stream`: Spark 3.5 has neither Python state nor scalar subqueries
in its DataFrame API."""

STREAMS_ON_CONNECT = (4, 1)
"""The first version with `group_stream` on Spark Connect: that of Spark 4.0 lacks Python state."""

CONNECT = (4, 0)
"""The first version with Spark Connect: that of Spark 3.5 has classes of its own for frames."""

_PARTITION_IDS = (4, 1)
"""The first version with `DataFrame.repartitionById`."""


def _known(*names: str) -> tuple[type[DataType], ...]:
    """Return the types of these names that this version of PySpark has."""
    return tuple(getattr(types, name) for name in names if hasattr(types, name))


NOT_HASHED = _known("MapType", "VariantType")
"""Types that Spark cannot hash."""

NOT_IN_ARROW = _known("YearMonthIntervalType", "CalendarIntervalType")
"""Types of Spark that Arrow does not have."""


def version_of(session: SparkSession) -> tuple[int, int]:
    """Return the major and the minor version of Spark; on Spark Connect, the older of both sides.

    >>> version_of(spark) >= OLDEST
    True
    """
    return min(_parsed(session.version), _parsed(pyspark.__version__))


@cache
def _parsed(version: str) -> tuple[int, int]:
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def require_version(
    session: SparkSession, least: tuple[int, int], what: str, instead: str = ""
) -> None:
    """Refuse what this version of Spark cannot do.

    Args:
        session: The session.
        least: The first version that can do it.
        what: The call, such as "sy.group_stream".
        instead: What users of older versions can do.

    Raises:
        ValueError: The version is too old.
    """
    if version_of(session) < least:
        found = min((session.version, pyspark.__version__), key=_parsed)
        raise ValueError(f"{_too_old(what, least, found)}{instead}")


def require_streams(stream: DataFrame, instead: str) -> None:
    """Refuse a stream if this version of Spark lacks what `group_stream` needs.

    Args:
        stream: The stream; Spark Connect needs a later version than classic Spark.
        instead: What users of older versions can do.

    Raises:
        ValueError: The version is too old.
    """
    if _is_of_connect(stream):
        call = "sy.group_stream through Spark Connect"
        require_version(stream.sparkSession, STREAMS_ON_CONNECT, call, instead)
    else:
        require_version(stream.sparkSession, STREAMS, "sy.group_stream", instead)


def require_connect(frame_or_master: object) -> None:
    """Refuse a frame of Spark Connect, or the address of a server, if PySpark is too old.

    >>> require_connect(spark.range(3))
    >>> require_connect("local[2]")
    """
    is_address = isinstance(frame_or_master, str) and frame_or_master.startswith("sc://")
    if (is_address or _is_of_connect(frame_or_master)) and _parsed(pyspark.__version__) < CONNECT:
        raise ValueError(_too_old("Spark Connect", CONNECT, pyspark.__version__))


def _is_of_connect(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect.")


def _too_old(what: str, least: tuple[int, int], found: str) -> str:
    return f"{what} needs Spark {'.'.join(map(str, least))} or newer, and this is {found}"


# State in Python.

try:
    from pyspark.sql.streaming import stateful_processor
except ImportError:  # Spark 3.5
    StatefulProcessor: Any = object
else:
    StatefulProcessor = stateful_processor.StatefulProcessor


# Partitions.


def to_partitions(frame: DataFrame, partitions: int, partition: Column) -> DataFrame:
    """Send every row to the partition whose number an expression gives.

    Args:
        frame: The rows.
        partitions: The number of partitions.
        partition: The number of the row's partition, from 0; never null.

    Returns:
        The same rows in `partitions` partitions.
    """
    if version_of(frame.sparkSession) >= _PARTITION_IDS:
        return frame.repartitionById(partitions, partition)
    return frame.repartition(partitions, label_of(partition, partitions))


def to_joined_partitions(
    frame: DataFrame, partitions: int, partition: str, keys: Sequence[Column]
) -> DataFrame:
    """Send every row to a partition where a join by this column and by the keys leaves it.

    Before Spark 4.1, a join leaves rows in their partitions only if all its columns decide about
    them. The column then gets, in place of the number, an integer that stands for the number and
    completes the hash of the key.

    Args:
        frame: The rows.
        partitions: The number of partitions.
        partition: The column with the number of the row's partition, from 0.
        keys: The other columns of the join.

    Returns:
        The same rows; the column `partition` may have other values, equal for equal numbers of
        equal keys.
    """
    number = F.col(partition)
    has_ids = version_of(frame.sparkSession) >= _PARTITION_IDS
    if not has_ids:
        number = completion(list(keys), number, partitions)
    # The number is never null. The coalesce makes this known to Spark, which otherwise computes
    # each number twice: once to check for nulls.
    frame = frame.withColumn(partition, F.coalesce(number, F.lit(0)))
    if has_ids:
        # Spark shuffles again under its internal setting requireAllClusterKeysForDistribution.
        return frame.repartitionById(partitions, F.col(partition))
    return frame.repartition(partitions, *keys, F.col(partition))


def can_join_in_place(session: SparkSession, keys: Sequence[DataType]) -> bool:
    """Whether a join by keys of these types leaves rows where `to_joined_partitions` sends them.

    Spark normalizes floating-point numbers before a join compares them. Before Spark 4.1 it then
    does not see that the rows are partitioned by these keys, and shuffles them again.
    """
    return version_of(session) >= _PARTITION_IDS or not any(map(_has_floats, keys))


def _has_floats(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _has_floats(kind.elementType)
    if isinstance(kind, StructType):
        return any(_has_floats(field.dataType) for field in kind.fields)
    return isinstance(kind, FloatType | DoubleType)


# Arrow.


def to_arrow(frame: DataFrame) -> pa.Table:
    """Collect a frame as an Arrow table."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    # `toArrow` of later versions starts with the same call.
    batches: list[pa.RecordBatch] = frame._collect_as_arrow()  # type: ignore[operator]
    schema = to_arrow_schema(frame.schema)
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def from_arrow(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return the frame of an Arrow table."""
    if version_of(session) >= (4, 0):
        return session.createDataFrame(table)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return session.createDataFrame(list(rows), from_arrow_schema(table.schema))


def schema_in_arrow(schema: StructType, *, is_large: bool) -> pa.Schema:
    """Return the Arrow schema of columns, as Python stages get and return them.

    Args:
        schema: The columns.
        is_large: Whether texts and binary values have offsets of 64 bits.
    """
    known = signature(to_arrow_schema).parameters
    # Spark 4.3 requires a time zone; earlier versions use UTC without this argument.
    given: dict[str, Any] = {"timezone": "UTC", "prefers_large_types": is_large}
    return to_arrow_schema(schema, **{name: given[name] for name in given if name in known})


def spark_types(schema: pa.Schema) -> list[DataType]:
    """Return the types of Arrow columns in Spark; timestamps without a zone stay without one.

    >>> numbers = pa.list_(pa.field("number", pa.int32(), nullable=False))
    >>> spark_types(pa.schema({"numbers": numbers}))
    [ArrayType(IntegerType(), False)]
    """
    found = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return [_like(c.dataType, arrow) for c, arrow in zip(found, schema.types, strict=True)]


def _like(kind: DataType, arrow: pa.DataType) -> DataType:
    """Return a type whose inner values may be null as in Arrow; Spark 4.0 loses this."""
    if isinstance(kind, ArrayType):
        return ArrayType(_like(kind.elementType, arrow.value_type), arrow.value_field.nullable)
    if isinstance(kind, MapType):
        value = _like(kind.valueType, arrow.item_type)
        return MapType(_like(kind.keyType, arrow.key_type), value, arrow.item_field.nullable)
    if isinstance(kind, StructType):
        inner = zip(kind.fields, arrow, strict=True)
        fields = ((f, _like(f.dataType, own.type)) for f, own in inner)
        return StructType([StructField(f.name, like, f.nullable, f.metadata) for f, like in fields])
    return kind


def arrow_function(
    function: Callable[..., pa.Array], inputs: Sequence[pa.DataType], result: DataType
) -> Callable[..., Column]:
    """Return a function of columns that is computed in Python, on Arrow arrays.

    Args:
        function: Maps arrays to an array.
        inputs: The Arrow types of the arguments.
        result: The type of the result.
    """
    arrow_udf = getattr(F, "arrow_udf", None)  # since Spark 4.1
    if arrow_udf is not None:
        made: Callable[..., Column] = arrow_udf(function, result)
        return made
    import pandas as pd  # only older versions need it
    from pyspark.sql.pandas.functions import pandas_udf

    def through_pandas(*columns: pd.Series) -> pd.Series:
        arrays = (
            pa.Array.from_pandas(column, type=kind)
            for column, kind in zip(columns, inputs, strict=True)
        )
        return function(*arrays).to_pandas()

    through: Callable[..., Column] = pandas_udf(through_pandas, result)  # type: ignore[call-overload]
    return through


# Expressions.


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


# Observations.


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


# Checkpoints.

_CHECKPOINTING = ".checkpointing" if _parsed(pyspark.__version__) >= (4, 1) else ""

CHECKPOINT_FILE_MANAGER = (
    f"org.apache.spark.sql.execution.streaming{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
)
"""The Java class that writes checkpoints to a local disk, for a session of this PySpark."""


# Tags.

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


# Logs.


def stop_logging_errors() -> None:
    """Stop PySpark from logging each error of a query as JSON; Spark 3.5 never does."""
    try:
        from pyspark.logger import PySparkLogger  # Spark 4.0
    except ImportError:
        return
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
