"""Measurements and reports for the tests of the delegations."""

import pytest

from steelyard.assignment import Assignment
from steelyard.delegation import Measurement, PaperRules, Report, Signal, SteadyRules

IDLE, NORMAL, BUSY = Signal.IDLE, Signal.NORMAL, Signal.BUSY
BOTH = pytest.mark.parametrize("rules", [PaperRules(), SteadyRules()], ids=["paper", "steady"])


def at(utilization):
    """Return the measurement of a worker with this utilization in a slot of one second."""
    return Measurement(arrivals=utilization, service_time=1.0)


def source(rules=None, workers=3, each=10):
    return (rules or SteadyRules()).source(Assignment.equal(workers, each))


def say(side, slot, **states):
    """Let workers w0, w1, ... acknowledge with these states; return the moves."""
    return [
        move
        for name, state in states.items()
        for move in side.acknowledge(int(name[1:]), Report(slot, state))
    ]
