"""Aggregators by name, for the command line."""

from collections.abc import Callable

from steelyard.aggregators.base import Aggregator
from steelyard.aggregators.simple import Count, Max, Mean, Min, Sum, Variance
from steelyard.aggregators.values import CollectSet, TopK


def _distinct(column: str) -> Aggregator:
    from steelyard.aggregators.sketches import ApproxDistinct

    return ApproxDistinct(column)


def _quantiles(column: str) -> Aggregator:
    from steelyard.aggregators.sketches import Quantiles

    return Quantiles(column, [0.5, 0.99])


_OF_A_COLUMN: dict[str, Callable[[str], Aggregator]] = {
    "count": Count,
    "sum": Sum,
    "mean": Mean,
    "min": Min,
    "max": Max,
    "variance": Variance,
    "set": CollectSet,
    "topk": TopK,
    "distinct": _distinct,
    "quantiles": _quantiles,
}


AGGREGATORS = ("count", *(f"{name}:COLUMN" for name in _OF_A_COLUMN))
"""The texts that `aggregator_named` accepts; COLUMN stands for the name of a column."""


def aggregator_named(text: str) -> Aggregator:
    """Return the aggregator for a text such as `count`, `sum:bytes` or `topk:word`.

    >>> aggregator_named("sum:bytes").name
    'sum(bytes)'
    """
    name, _, column = text.partition(":")
    if text == "count":
        return Count()
    if name not in _OF_A_COLUMN or not column:
        of_a_column = ", ".join(AGGREGATORS[1:])
        raise ValueError(f"agg must be count or one of {of_a_column}; got {text!r}")
    return _OF_A_COLUMN[name](column)
