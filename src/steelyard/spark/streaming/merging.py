"""Merge partial states in Spark itself, for the aggregators whose states it can merge."""

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DecimalType, DoubleType, StructField

from steelyard.aggregators import Aggregator, Count, Max, Mean, Min, Sum
from steelyard.spark.executor_packages import ALWAYS, WITH_PANDAS
from steelyard.spark.shipping import by_value
from steelyard.spark.versions.arrow import CALLS_WITHOUT_PANDAS, arrow_function

_MERGING = ("state", "merge", "result", "result_type")


def is_native(aggregator: Aggregator) -> bool:
    """Whether Spark can merge the states of an aggregator.

    A subclass may change how rows are added. Its states, their merge and the result must be those
    of `Count`, `Sum`, `Min`, `Max` or `Mean`.
    """
    return any(
        all(getattr(type(aggregator), name) is getattr(known, name) for name in _MERGING)
        for known in (Count, Sum, Min, Max, Mean)
    )


def merged(aggregator: Aggregator, states: list[StructField], kind: DataType) -> Column:
    """Return the result of all states of a key, in the declared type."""
    if isinstance(aggregator, Min):
        result = F.min(states[0].name)
    elif isinstance(aggregator, Max):
        result = F.max(states[0].name)
    elif isinstance(aggregator, Mean):
        result = _mean(aggregator, states, kind)
    elif isinstance(aggregator, Count):
        result = _count(states[0])
    else:
        result = _sum(aggregator, states[0])
    return result.alias(aggregator.name)


def _count(state: StructField) -> Column:
    """Return the sum of counts. It always fits, so it needs none of the checks of `_sum`."""
    return F.sum(state.name)


def _sum(aggregator: Aggregator, state: StructField) -> Column:
    """Return the sum in the type of the state; a sum that does not fit raises an error.

    Without ANSI mode, Spark's own sum would overflow or be null.
    """
    column, kind = F.col(state.name), state.dataType
    if isinstance(kind, DoubleType):
        return F.sum(column)
    total = F.try_sum(column).try_cast(kind)  # null if it does not fit
    failure = F.raise_error(
        f"{aggregator.name}: a sum does not fit into {kind.simpleString()}: cast the column to a "
        "wider decimal or to double"
    )
    return F.when(total.isNotNull(), total).when(F.count(column) > 0, failure)


def _mean(aggregator: Aggregator, states: list[StructField], kind: DataType) -> Column:
    total, count = _sum(aggregator, states[0]), _count(states[1])
    if not isinstance(kind, DecimalType):
        return F.when(count > 0, total / count)
    # Spark's division of decimals returns fewer decimal places than a mean has.
    modules = ALWAYS if CALLS_WITHOUT_PANDAS else WITH_PANDAS
    fetch, promised = by_value(aggregator, modules), pa.decimal128(kind.precision, kind.scale)

    def mean(total: pa.Array, count: pa.Array) -> pa.Array:
        return fetch().result([total, count]).cast(promised)

    inputs = (to_arrow_type(states[0].dataType), pa.int64())
    return arrow_function(mean, inputs, kind)(total, count)


def states_of(
    aggregator: Aggregator, schema: pa.Schema, fields: list[StructField]
) -> list[StructField]:
    """Remove the states of an aggregator from the front of a list of fields, and return them."""
    return [fields.pop(0) for _ in aggregator.state(schema)]
