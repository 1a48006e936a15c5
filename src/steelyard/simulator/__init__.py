"""Simulate a cluster: sources, workers with queues, signals and delegation.

The simulator uses the same schemes, assignments and delegation rules that run on Spark.
"""

from steelyard.datasets.message_stream import ArrayStream, Chunk, Stream
from steelyard.simulator.cluster import Change, Cluster
from steelyard.simulator.grouping import ConsistentGrouping, Direct, Grouping, Plans
from steelyard.simulator.outcome import Outcome, spread_over_workers
from steelyard.simulator.service import Deterministic, Exponential, PerKey, Service
from steelyard.simulator.simulation import simulate
from steelyard.simulator.simulation_settings import SimulationSettings

__all__ = [
    "ArrayStream",
    "Change",
    "Chunk",
    "Cluster",
    "ConsistentGrouping",
    "Deterministic",
    "Direct",
    "Exponential",
    "Grouping",
    "Outcome",
    "PerKey",
    "Plans",
    "Service",
    "SimulationSettings",
    "Stream",
    "simulate",
    "spread_over_workers",
]
