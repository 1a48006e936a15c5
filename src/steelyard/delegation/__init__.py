"""Delegation: virtual workers move by signals alone, without configured capacities.

Once a slot, a worker side turns measurements into a state, which travels with acknowledgments. A
source side pairs busy workers with idle workers and moves virtual workers.

>>> from steelyard.assignment import Assignment
>>> rules = SteadyRules()
>>> slow, fast = rules.worker(slot=60), rules.worker(slot=60)
>>> source = rules.source(Assignment.equal(workers=2, each=100))
>>> source.acknowledge(0, slow.report(Measurement(arrivals=59, service_time=1.0), 100, now=60))
[]
>>> source.acknowledge(1, fast.report(Measurement(arrivals=59, service_time=0.1), 100, now=60))
[Move(virtual=99, giver=0, taker=1)]
"""

from steelyard.delegation.base import Rules, SourceSide, WorkerSide
from steelyard.delegation.measures import (
    BusyTime,
    Measure,
    Memory,
    QueueLength,
    Work,
    fair_busy_time,
)
from steelyard.delegation.paper import PaperRules
from steelyard.delegation.signals import Measurement, Report, Signal
from steelyard.delegation.steady import SteadyRules

__all__ = [
    "BusyTime",
    "Measure",
    "Measurement",
    "Memory",
    "PaperRules",
    "QueueLength",
    "Report",
    "Rules",
    "Signal",
    "SourceSide",
    "SteadyRules",
    "Work",
    "WorkerSide",
    "fair_busy_time",
]
