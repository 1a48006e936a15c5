"""The definition of the state of a query: settings enter; texts leave, which a restart compares."""

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type

from steelyard.aggregators import Aggregator
from steelyard.aggregators.describing import described
from steelyard.aggregators.layout import plain_schema
from steelyard.control.definition import Definition
from steelyard.spark.columns import Key, shown
from steelyard.windows import Window


class Grouped(Protocol):
    """The stage that sends messages to workers."""

    @property
    def frame(self) -> DataFrame: ...

    @property
    def key(self) -> Key: ...

    @property
    def window(self) -> Window | None: ...


def definition_of(
    grouped: Grouped, placement: str, aggregators: Sequence[Aggregator], schema: pa.Schema
) -> Definition:
    """Return the settings on which the state of a result depends.

    Args:
        grouped: The stage that sends messages to workers.
        placement: The name of the placement.
        aggregators: The aggregators of the result.
        schema: The columns that the aggregators read.
    """
    keys = [(name, grouped.frame.schema[name].dataType) for name in grouped.key.names]
    states = [state for a in aggregators for state in a.state(plain_schema(schema)).items()]
    return Definition(
        aggregators=tuple(map(described, aggregators)),
        keys=tuple(f"{shown(name)} {kind.simpleString()}" for name, kind in keys),
        window=None if grouped.window is None else str(grouped.window),
        placement=placement,
        states=tuple(f"{name} {_type_name(kind)}" for name, kind in states),
    )


def _type_name(kind: pa.DataType) -> str:
    """Return Spark's name of a type, which does not depend on the session or on Arrow's version."""
    try:
        return from_arrow_type(kind, prefer_timestamp_ntz=True).simpleString()
    except PySparkTypeError:  # the state of an aggregator that never leaves Python
        return str(kind)
