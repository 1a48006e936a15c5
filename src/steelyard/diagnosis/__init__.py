"""Is data skewed, what would that cost, what should one do: from counts of keys, without Spark."""

from steelyard.diagnosis.advice import WORKS, Advice, Job
from steelyard.diagnosis.costs import WAYS, Cost
from steelyard.diagnosis.counts import BUCKETS, TOP, KeyCounts, TopKey
from steelyard.diagnosis.examination import Examination, HotKey, examined
from steelyard.diagnosis.periods import OverTime, Period, over_time

__all__ = [
    "BUCKETS",
    "TOP",
    "WAYS",
    "WORKS",
    "Advice",
    "Cost",
    "Examination",
    "HotKey",
    "Job",
    "KeyCounts",
    "OverTime",
    "Period",
    "TopKey",
    "examined",
    "over_time",
]
