"""Convert frames, types and functions between Spark and Arrow.

Frames and Spark types enter and Arrow data leaves, or the reverse.
"""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from steelyard.spark.versions.supported import version_of


def _known(*names: str) -> tuple[type[DataType], ...]:
    """Return the types of these names that this version of PySpark has."""
    return tuple(getattr(types, name) for name in names if hasattr(types, name))


NOT_HASHED = _known("MapType", "VariantType")
"""Types that Spark cannot hash."""

NOT_IN_ARROW = _known("YearMonthIntervalType", "CalendarIntervalType")
"""Types of Spark that Arrow does not have."""


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


_ARROW_UDF = getattr(F, "arrow_udf", None)

CALLS_WITHOUT_PANDAS = _ARROW_UDF is not None
"""Whether the tasks of an `arrow_function` need no pandas: so since Spark 4.1."""


def arrow_function(
    function: Callable[..., pa.Array], inputs: Sequence[pa.DataType], result: DataType
) -> Callable[..., Column]:
    """Return a function of columns that is computed in Python, on Arrow arrays.

    Args:
        function: Maps arrays to an array.
        inputs: The Arrow types of the arguments.
        result: The type of the result.
    """
    if _ARROW_UDF is not None:
        made: Callable[..., Column] = _ARROW_UDF(function, result)
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
