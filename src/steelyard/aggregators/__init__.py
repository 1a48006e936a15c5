"""Aggregators whose partial states merge, so that several workers can share the rows of a key."""

from typing import TYPE_CHECKING

from steelyard.aggregators.aggregation import Aggregation
from steelyard.aggregators.base import Aggregator
from steelyard.aggregators.groups import Groups
from steelyard.aggregators.simple import Count, Max, Mean, Min, Sum, Variance
from steelyard.aggregators.values import CollectSet, TopK

if TYPE_CHECKING:
    from steelyard.aggregators.sketches import ApproxDistinct, Quantiles

__all__ = [
    "Aggregation",
    "Aggregator",
    "ApproxDistinct",
    "CollectSet",
    "Count",
    "Groups",
    "Max",
    "Mean",
    "Min",
    "Quantiles",
    "Sum",
    "TopK",
    "Variance",
]


def __getattr__(name: str) -> object:
    # Import datasketches only if a sketch is used, because executors may lack it.
    if name in ("ApproxDistinct", "Quantiles"):
        from steelyard.aggregators import sketches

        return getattr(sketches, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
