"""Convert column types between Spark and Python; no other module decides about types.

Python stages get Arrow data and return Arrow data. Spark schemas enter and Arrow schemas leave, or
the reverse. A column whose type would change in the conversion is refused.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
)

from steelyard.aggregators import Aggregator, Count
from steelyard.spark.columns import shown, visible
from steelyard.spark.versions.arrow import NOT_IN_ARROW, schema_in_arrow, spark_types


def arrow_schema(session: SparkSession, argument: str, schema: StructType) -> pa.Schema:
    """Return the Arrow schema of the data that a Python stage gets or returns for these columns."""
    for field in schema.fields:
        if any(isinstance(part, NOT_IN_ARROW) for part in _parts(field.dataType)):
            raise ValueError(
                f"{argument}: column {shown(field.name)!r} is {field.dataType.simpleString()}, "
                "which Arrow cannot hold; leave it out, or cast it to another type first"
            )
    uses_large = session.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false") == "true"
    return schema_in_arrow(schema, is_large=uses_large)


def spark_schema(schema: pa.Schema, keys: Sequence[StructField] = ()) -> StructType:
    """Return the Spark schema of the columns that a Python stage returns; keys come first.

    Arrow has fewer types than Spark, so the keys keep their Spark types.
    """
    kinds = spark_types(schema)
    kinds[: len(keys)] = [key.dataType for key in keys]
    return StructType(list(map(StructField, schema.names, kinds)))


def aggregated_schema(
    frame: DataFrame, keys: Sequence[str], aggregators: Sequence[Aggregator]
) -> pa.Schema:
    """Return the schema of the rows that workers get: the keys and the columns of the aggregators.

    A column is refused if Arrow has another type for it. Its values would be compared by other
    rules, and the results would have that type. A count does not depend on the type.
    """
    fields = {field.name: field for field in frame.schema.fields}
    reads = {name: aggregator for aggregator in aggregators for name in aggregator.columns}
    for name, aggregator in reads.items():
        if name not in fields:
            raise ValueError(
                f"{aggregator.name} needs the column {name!r}; there are "
                f"{', '.join(visible(frame))}"
            )
    read = StructType([fields[name] for name in dict.fromkeys([*keys, *reads])])
    schema = arrow_schema(frame.sparkSession, "aggregate", read)
    arrives = dict(zip(schema.names, spark_schema(schema).fields, strict=True))
    for name in keys:
        if isinstance(fields[name].dataType, UserDefinedType):
            found = fields[name].dataType.typeName()
            raise ValueError(  # noqa: TRY004
                f"key: column {shown(name)!r} has the user-defined type {found}; cast it"
            )
    for aggregator in aggregators:
        for name in () if isinstance(aggregator, Count) else aggregator.columns:
            _require_equal(aggregator, fields[name], arrives[name])
    return schema


def _require_equal(aggregator: Aggregator, field: StructField, arrives: StructField) -> None:
    # Arrow has one type for all day-time intervals. It is the widest, so no value changes.
    is_interval = isinstance(field.dataType, DayTimeIntervalType)
    here, there = field.dataType.simpleString(), arrives.dataType.simpleString()
    if here != there and not is_interval:
        raise ValueError(
            f"{aggregator.name}: column {field.name!r} is {here}, but workers would read it as "
            f"{there}; cast it to {there} first"
        )


def _parts(kind: DataType) -> Iterator[DataType]:
    """Yield a type and all types inside it."""
    yield kind
    inner: list[DataType] = []
    if isinstance(kind, ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, MapType):
        inner = [kind.keyType, kind.valueType]
    elif isinstance(kind, StructType):
        inner = [field.dataType for field in kind.fields]
    for part in inner:
        yield from _parts(part)
