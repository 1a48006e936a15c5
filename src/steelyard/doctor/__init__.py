"""Find out whether data is skewed, how much the skew costs, and how to fix it.

Counts of keys enter; an `Examination` leaves. It holds the numbers, and `describe()` returns them
as text. Nothing here imports Spark. `examine`, which counts the keys of a DataFrame, is loaded when
it is first used.

key_counts.py    the number of messages of each key
skew.py          entropy, and the nearest Zipf distribution
zipf_line.py     the line of a figure, over the ranks that it describes
periods.py       whether the hot keys change over time
strategies.py    the grouping strategies that are compared
loads.py         the load of each task under a strategy
spark_loads.py   the same for Spark's own remedies
adaptive.py      what adaptive execution does with the partitions of a join
scheduling.py    the time of a stage, from the times of its tasks
estimates.py     what cannot be counted: time and bytes of a row
costs.py         the cost of each strategy
work.py          the kinds of work on the rows of a key
job.py           work, key and workers, as lines of code
advice.py        one recommendation
diagnosis.py     compute an examination from counts
examination.py   the examination as numbers, text and JSON
examination_view.py   the examination as HTML for a notebook
plain_text.py    keys and times as short text
"""

from typing import TYPE_CHECKING

from steelyard.doctor.advice import Advice
from steelyard.doctor.costs import Cost
from steelyard.doctor.estimates import Estimates
from steelyard.doctor.examination import Examination, HotKey
from steelyard.doctor.periods import Interval, OverTime

if TYPE_CHECKING:
    from steelyard.spark.examining import examine

__all__ = [
    "Advice",
    "Cost",
    "Estimates",
    "Examination",
    "HotKey",
    "Interval",
    "OverTime",
    "examine",
]


def __getattr__(name: str) -> object:
    if name == "examine":
        from importlib import import_module

        return import_module("steelyard.spark.examining").examine
    raise AttributeError(f"module 'steelyard.doctor' has no attribute {name!r}")
