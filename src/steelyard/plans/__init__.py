"""A source decides for many messages at once.

balance.py        how evenly, and from which counts
planner.py        counts of messages by bucket become a plan
routing_plan.py   for every bucket of keys, the virtual workers that get its messages
cells.py          the parts of a bucket's messages, and how a plan writes them
lookup.py         from a bucket and a salt to a bin
bucket_counts.py  counts of messages by bucket, checked
description.py    a plan as a table for people
task_sizes.py     how much each of a worker's tasks should hold
"""

from steelyard.plans.balance import Balance
from steelyard.plans.cells import Cell
from steelyard.plans.planner import Planner
from steelyard.plans.routing_plan import RoutingPlan

__all__ = ["Balance", "Cell", "Planner", "RoutingPlan"]
