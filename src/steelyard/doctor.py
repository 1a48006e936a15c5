"""Is my data skewed, what would that cost, what should I do?

A frame and a key enter; an `Examination` leaves: numbers to read, `describe()` for people.
"""

from steelyard.diagnosis import Advice, Cost, Examination, HotKey, OverTime, Period
from steelyard.spark.examining import examine

__all__ = ["Advice", "Cost", "Examination", "HotKey", "OverTime", "Period", "examine"]
