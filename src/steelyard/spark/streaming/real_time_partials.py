"""Partial results of keys in real-time mode: how workers make them, and how they merge.

A worker's messages enter; a row with the newest partial result of a key leaves for every message.
Partial results of all workers enter; results of keys leave.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, StructType

from steelyard.aggregators import Aggregator, Count, Max, Mean, Min, Sum
from steelyard.spark.columns import named, require_frame
from steelyard.validation import require_whole

PARTIAL = "partial"
"""The column of partial results, a struct: the messages of the key that the worker has counted, the
worker, and the states of the aggregators."""

_KINDS = (Count, Sum, Min, Max, Mean)


def require_native(aggregators: Sequence[object]) -> None:
    """Refuse aggregators that Spark cannot compute without Python."""
    if not aggregators:
        raise ValueError("aggregate needs at least one aggregator, such as sy.Count()")
    for aggregator in aggregators:
        if not isinstance(aggregator, Aggregator):
            raise TypeError(f"aggregate takes aggregators such as Count(), got {aggregator!r}")
        if type(aggregator) not in _KINDS:
            raise ValueError(
                f"{aggregator.name} runs Python, which Spark's real-time mode does not: use Count, "
                "Sum, Min, Max or Mean, or placement=sy.Pull() or sy.Delegated()"
            )


def states(aggregators: Sequence[Aggregator]) -> list[Column]:
    """Return the aggregates of Spark that compute the states, named `state_0` and so on."""
    made = [state for aggregator in aggregators for state in _states(aggregator)]
    return [state.alias(f"state_{i}") for i, state in enumerate(made)]


def _states(aggregator: Aggregator) -> list[Column]:
    columns = [named(name) for name in aggregator.columns]
    if isinstance(aggregator, Count):
        return [F.count(columns[0] if columns else F.lit(1))]
    (column,) = columns
    if isinstance(aggregator, Mean):
        return [F.sum(column.cast("double")), F.count(column)]
    function = {Sum: F.sum, Min: F.min, Max: F.max}[type(aggregator)]
    return [function(column)]


def merge_partials(
    partials: DataFrame, *aggregators: Aggregator, workers: int | None = None
) -> DataFrame:
    """Merge the partial results of a real-time query, like those of `RealTimeStream.aggregate`.

    The result has the columns of the key and one column for each aggregator. It is exact when the
    frame holds all partial results; the order of its rows does not matter, and repeated rows and
    rows of interrupted batches do no harm.

    Args:
        partials: Rows with the columns of the key and the column `partial`: a batch DataFrame, or
            a stream, from which every row leads to a new result of its key.
        aggregators: The aggregators of the query that made the partial results, in its order.
        workers: The number of workers of this query; needed for a stream.

    Returns:
        The results, one row for each key; of a stream, in update mode.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The frame has no such partial results, or `workers` is missing.

    >>> kinds = "page string, partial struct<messages: long, worker: int, state_0: long>"
    >>> rows = [("news", (1, 0, 1)), ("news", (7, 0, 7)), ("news", (2, 1, 2))]
    >>> merge_partials(spark.createDataFrame(rows, kinds), Count()).first()
    Row(page='news', count=9)
    """
    require_frame("partials", partials)
    require_native(aggregators)
    kinds = _kinds_of(partials, aggregators)
    keys = [named(name) for name in partials.columns if name != PARTIAL]
    newest = F.max(PARTIAL)
    if not partials.isStreaming:
        by_worker = partials.groupBy(*keys, F.col(f"{PARTIAL}.worker").alias(PARTIAL))
        parts = by_worker.agg(newest.alias("newest")).drop(PARTIAL)
        merged = parts.groupBy(*keys).agg(F.collect_list("newest").alias(PARTIAL))
    else:
        if workers is None:
            raise ValueError(
                "workers: a stream of partial results needs the number of workers of the query "
                "that made them"
            )
        require_whole("workers", workers, least=1)
        # Spark allows only one aggregation in a stream in update mode: one maximum for each worker.
        of = F.col(f"{PARTIAL}.worker")
        each = [F.max(F.when(of == w, F.col(PARTIAL))).alias(f"{w}") for w in range(workers)]
        merged = partials.groupBy(*keys).agg(*each)
        parts_of = F.array_compact(F.array(*(named(f"{w}") for w in range(workers))))
        merged = merged.select(*keys, parts_of.alias(PARTIAL))
    return merged.select(*keys, *_results(aggregators, kinds))


def _kinds_of(partials: DataFrame, aggregators: Sequence[Aggregator]) -> list[DataType]:
    """Return the types of the states; refuse a frame without such partial results."""
    kinds = {field.name: field.dataType for field in partials.schema.fields}
    found = kinds.get(PARTIAL)
    count = sum(2 if isinstance(aggregator, Mean) else 1 for aggregator in aggregators)
    wanted = ["messages", "worker", *(f"state_{i}" for i in range(count))]
    if not isinstance(found, StructType) or found.names != wanted:
        shown = "none" if found is None else found.simpleString()
        raise ValueError(
            f"partials must have a column {PARTIAL!r} with the fields {', '.join(wanted)}, as "
            f"aggregate with the same aggregators makes it, got {shown}"
        )
    return [field.dataType for field in found.fields[2:]]


def _results(aggregators: Sequence[Aggregator], kinds: Sequence[DataType]) -> list[Column]:
    """Return the results from an array of the partial results of a key."""
    results, place = [], 0
    for aggregator in aggregators:
        state, kind = _state(place), kinds[place]
        place += 1
        if isinstance(aggregator, Count):
            result = F.coalesce(_sum(state, kind), F.lit(0).cast(kind))
        elif isinstance(aggregator, Min):
            result = F.array_min(state)
        elif isinstance(aggregator, Max):
            result = F.array_max(state)
        elif isinstance(aggregator, Mean):
            number = _sum(_state(place), kinds[place])
            result = F.when(number > 0, _sum(state, kind) / number)
            place += 1
        else:
            result = _sum(state, kind)
        results.append(result.alias(aggregator.name))
    return results


def _state(place: int) -> Column:
    """Return an array with this state of every worker that has one."""
    return F.array_compact(F.col(PARTIAL)[f"state_{place}"])


def _sum(numbers: Column, kind: DataType) -> Column:
    """Return the sum of an array without nulls; null if it is empty."""
    zero = F.lit(0).cast(kind)
    total = F.aggregate(numbers, zero, lambda a, b: (a + b).cast(kind))
    return F.when(F.size(numbers) > 0, total)


def refuse_decimal_means(aggregators: Sequence[Aggregator], schema: StructType) -> None:
    """Refuse means of decimals: Spark's division has fewer decimal places than such a mean."""
    kinds = {field.name: field.dataType for field in schema.fields}
    for aggregator in aggregators:
        if isinstance(aggregator, Mean):
            (column,) = aggregator.columns
            if isinstance(kinds[column], DecimalType):
                raise ValueError(  # noqa: TRY004  # as for other columns that cannot be used
                    f"{aggregator.name}: a mean of decimals needs Python, which Spark's real-time "
                    "mode does not run: cast the column to double"
                )
