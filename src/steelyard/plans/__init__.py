"""A source decides for many messages at once.

balance.py        settings: how evenly rows are balanced, and which rows are counted
planner.py        turns counts of messages by bucket into a plan
routing_plan.py   for every bucket of keys, the virtual workers that get its messages
cells.py          the parts of a bucket's messages, and their JSON form
lookup.py         finds the bin of a bucket and a salt
routing_table.py  a plan as one array, for a lookup outside of Python
bucket_counts.py  checks counts of messages by bucket
description.py    describes a plan in a few lines of text
task_sizes.py     how many rows each task of a worker should get
"""

from steelyard.plans.balance import Balance
from steelyard.plans.cells import Cell
from steelyard.plans.planner import Planner
from steelyard.plans.routing_plan import RoutingPlan

__all__ = ["Balance", "Cell", "Planner", "RoutingPlan"]
