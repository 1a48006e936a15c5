"""How Spark itself merges partial states, for the aggregators whose states it understands."""

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

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


def merged(aggregator: Aggregator, states: list[Column], kind: DataType) -> Column:
    """The result of all states of a key, of the type that is promised."""
    if isinstance(aggregator, Min):
        result = F.min(states[0])
    elif isinstance(aggregator, Max):
        result = F.max(states[0])
    elif isinstance(aggregator, Mean):
        total, count = F.sum(states[0]), F.sum(states[1])
        result = F.when(count > 0, total / count)
    else:
        result = F.sum(states[0])
    return result.cast(kind).alias(aggregator.name)


def state_columns(names: list[str], schema: pa.Schema, aggregator: Aggregator) -> list[str]:
    """Takes the names of an aggregator's states from the front of a list of names."""
    return [names.pop(0) for _ in aggregator.state(schema)]
