"""Steelyard: balance skewed, keyed data over unequal workers.

The flow of a message:

1. A source hashes its key (`hash_keys`) and chooses a virtual worker, for one message at a time
   (`schemes`) or for many at once (`Planner` -> `RoutingPlan`).
2. The virtual worker belongs to a worker (`Assignment`).
3. The worker keeps a partial state for the key (`Aggregation` over `Count`, `Sum`, ...).
4. Once a slot the worker reports idle, normal or busy, and virtual workers move (`SteadyRules`).
5. Once a period the partial states of a key are merged into its result.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard import doctor, schemes
    from steelyard.aggregators import (
        Aggregation,
        Aggregator,
        ApproxDistinct,
        CollectSet,
        Count,
        Max,
        Mean,
        Min,
        Quantiles,
        Sum,
        TopK,
        Variance,
    )
    from steelyard.assignment import Assignment, Move
    from steelyard.delegation import Measurement, PaperRules, Report, Signal, SteadyRules
    from steelyard.hashing import hash_key, hash_keys
    from steelyard.placements import Delegated, Pull, RealTime
    from steelyard.plans import Balance, Planner, RoutingPlan
    from steelyard.spark.balancer import Balancer
    from steelyard.spark.frame_grouping import group_by
    from steelyard.spark.joining import join
    from steelyard.spark.lazy_balancing import balanced
    from steelyard.spark.repartitioning import plan, repartition
    from steelyard.spark.streaming.real_time_partials import merge_partials
    from steelyard.spark.streaming.stream_grouping import group_stream
    from steelyard.windows import Window

__version__ = "0.1.0"

__all__ = [
    "Aggregation",
    "Aggregator",
    "ApproxDistinct",
    "Assignment",
    "Balance",
    "Balancer",
    "CollectSet",
    "Count",
    "Delegated",
    "Max",
    "Mean",
    "Measurement",
    "Min",
    "Move",
    "PaperRules",
    "Planner",
    "Pull",
    "Quantiles",
    "RealTime",
    "Report",
    "RoutingPlan",
    "Signal",
    "SteadyRules",
    "Sum",
    "TopK",
    "Variance",
    "Window",
    "__version__",
    "balanced",
    "doctor",
    "group_by",
    "group_stream",
    "hash_key",
    "hash_keys",
    "join",
    "merge_partials",
    "plan",
    "repartition",
    "schemes",
]

# A name is imported at its first use. So `import steelyard` takes milliseconds, and an executor
# loads only the modules that its task uses.
_HOMES = {
    "aggregators": (
        "Aggregation Aggregator ApproxDistinct CollectSet Count Max Mean Min Quantiles Sum TopK "
        "Variance"
    ),
    "assignment": "Assignment Move",
    "delegation": "Measurement PaperRules Report Signal SteadyRules",
    "hashing": "hash_key hash_keys",
    "placements": "Delegated Pull RealTime",
    "plans": "Balance Planner RoutingPlan",
    "spark.balancer": "Balancer",
    "spark.frame_grouping": "group_by",
    "spark.joining": "join",
    "spark.lazy_balancing": "balanced",
    "spark.repartitioning": "plan repartition",
    "spark.streaming.real_time_partials": "merge_partials",
    "spark.streaming.stream_grouping": "group_stream",
    "windows": "Window",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in ("doctor", "schemes"):
        return import_module(f"steelyard.{name}")
    if name in _HOME_OF:
        return getattr(import_module(f"steelyard.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'steelyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
