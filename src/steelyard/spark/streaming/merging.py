"""How Spark itself merges partial states, for the aggregators whose states it understands."""

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField

from steelyard.aggregators import Aggregator, Count, Max, Mean, Min, Sum

_MERGING = ("state", "merge", "result", "result_type")


def is_native(aggregator: Aggregator) -> bool:
    """Whether Spark can merge the states of an aggregator.

    A subclass may add rows as it likes, as long as its states and what comes of them are the same.
    """
    return any(
        all(getattr(type(aggregator), name) is getattr(known, name) for name in _MERGING)
        for known in (Count, Sum, Min, Max, Mean)
    )


def merged(aggregator: Aggregator, states: list[StructField], kind: DataType) -> Column:
    """The result of all states of a key, of the type that is promised."""
    columns = [F.col(state.name) for state in states]
    if isinstance(aggregator, Min):
        result = F.min(columns[0])
    elif isinstance(aggregator, Max):
        result = F.max(columns[0])
    elif isinstance(aggregator, Mean):
        # A sum of decimals gets ten digits more each time, which the mean would lose behind its
        # point: the state has them already.
        total = F.sum(columns[0]).cast(states[0].dataType)
        count = F.sum(columns[1])
        result = F.when(count > 0, total / count)
    else:
        result = F.sum(columns[0])
    return result.cast(kind).alias(aggregator.name)


def states_of(
    aggregator: Aggregator, schema: pa.Schema, fields: list[StructField]
) -> list[StructField]:
    """Takes an aggregator's states from the front of a list of fields."""
    return [fields.pop(0) for _ in aggregator.state(schema)]
