"""The outcome of a simulation: series over time, and totals."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard import metrics
from steelyard.plans import RoutingPlan
from steelyard.simulator.cluster import Cluster
from steelyard.simulator.kernel import Tally, latency_of_bin

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a simulation; series have a row per tick, some also a column per worker."""

    cluster: Cluster
    """The cluster that was simulated."""
    begins: Floats = field(repr=False)
    """The times from which speeds apply."""
    speeds: Floats = field(repr=False)
    """The speeds from each of these times, by worker."""
    slot: float
    """The length of a slot in seconds."""
    tick: float
    """The length of a tick in seconds."""
    tally: Tally = field(repr=False)
    """The counts of the simulation."""
    moves: Counts = field(repr=False)
    """The number of moves of virtual workers in each slot."""
    signals: Counts = field(repr=False)
    """The number of reports that reached a source in each slot."""
    owned: Floats = field(repr=False)
    """The number of virtual workers by slot and worker, on average over the sources."""
    aggregated: Counts = field(repr=False)
    """The number of partial states that workers sent to the aggregator in each period."""
    probes: int = 0
    """The number of bins whose load the sources checked."""
    plan: RoutingPlan | None = field(default=None, repr=False)
    """The last plan; None if no plans were used."""
    end: float = 0.0
    """The arrival time of the last message."""
    states: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8), repr=False)
    """The signals by slot and worker: -1 for idle, 0 for normal, 1 for busy; empty without
    delegation."""
    first_moves: Counts = field(default_factory=lambda: np.zeros((0, 4), np.int64), repr=False)
    """The moves at the first source, in order: slot, virtual worker, giver, taker."""

    @cached_property
    def times(self) -> Floats:
        """The end of each tick, in seconds."""
        ends: Floats = (np.arange(self.tally.arrivals.shape[0] - 1) + 1) * self.tick
        return ends

    @cached_property
    def queue_length(self) -> Counts:
        """The queue length at the end of each tick: messages that arrived and are not finished."""
        return (self.tally.arrivals - self.tally.finishes)[:-1].cumsum(axis=0)

    @cached_property
    def latency(self) -> Floats:
        """The mean latency in seconds of the messages finished in each tick; NaN without any."""
        finishes = self.tally.finishes[:-1]
        mean: Floats = np.full(finishes.shape, np.nan)
        np.divide(self.tally.latency[:-1], finishes, out=mean, where=finishes > 0)
        return mean

    def latency_quantile(self, rank: float) -> Floats:
        """Return the quantile of the latency of all workers' messages in each tick.

        The error is at most 2 %. The quantile is NaN for a tick in which no message finished.
        """
        return np.array([_quantile(row, rank) for row in self.tally.latencies[:-1]])

    @cached_property
    def capacity(self) -> Floats:
        """The number of messages that each worker can process in each tick."""
        ends = self.times
        starts = ends - self.tick
        capacity = np.zeros((ends.size, self.cluster.workers))
        until = np.append(self.begins[1:], np.inf)
        for begin, end, speeds in zip(self.begins, until, self.speeds, strict=True):
            overlap = np.clip(np.minimum(ends, end) - np.maximum(starts, begin), 0, None)
            capacity += overlap[:, None] * speeds
        return capacity

    @cached_property
    def utilization(self) -> Floats:
        """The messages that arrived in each tick, as a fraction of the worker's capacity."""
        utilization: Floats = self.tally.arrivals[:-1] / self.capacity
        return utilization

    @cached_property
    def memory(self) -> Counts:
        """The number of different keys that each worker has held by the end of each tick."""
        return self.tally.new_keys[:-1].cumsum(axis=0)

    def every(self, seconds: float) -> "Outcome":
        """Return the outcome with longer ticks; `seconds` must be a multiple of `tick`."""
        ticks = round(seconds / self.tick)
        if ticks < 1 or abs(ticks * self.tick - seconds) > 1e-9 * seconds:
            raise ValueError(f"seconds must be a multiple of tick, {self.tick} s, got {seconds} s")
        by_tick = ("arrivals", "finishes", "latency", "new_keys", "latencies")
        joined = {name: _joined(getattr(self.tally, name), ticks) for name in by_tick}
        return replace(self, tick=seconds, tally=self.tally._replace(**joined))

    def series(self) -> dict[str, Floats]:
        """Return all series with one value per tick, among them those of the paper's figures.

        For series by worker, `_max_min` is the largest value minus the smallest, and `_max_avg`
        is the largest value minus the mean. Moves and signals are at the last tick of each slot.
        """
        named: dict[str, Floats] = {}
        for name, values in (
            ("queue_length", self.queue_length),
            ("latency", self.latency),
            ("utilization", self.utilization),
            ("memory", self.memory),
        ):
            named[f"{name}_max_min"], named[f"{name}_max_avg"] = spread_over_workers(values)
        finishes = self.tally.finishes[:-1].sum(axis=1)
        seconds = np.full(finishes.shape, np.nan)
        np.divide(self.tally.latency[:-1].sum(axis=1), finishes, out=seconds, where=finishes > 0)
        return {
            "queue_length": self.queue_length.sum(axis=1).astype(np.float64),
            "latency_mean": seconds,
            "latency_p50": self.latency_quantile(0.5),
            "latency_p99": self.latency_quantile(0.99),
            "utilization_max": self.utilization.max(axis=1),
            "imbalance": _surplus(self.utilization),
            "memory": self.memory.sum(axis=1).astype(np.float64),
            "moves": self._at_slot_ends(self.moves),
            "signals": self._at_slot_ends(self.signals),
            **named,
        }

    def _at_slot_ends(self, by_slot: Counts) -> Floats:
        ends = np.arange(1, by_slot.size + 1) * self.slot
        tick = np.minimum(np.ceil(ends / self.tick - 1e-9).astype(np.int64), self.times.size) - 1
        return np.bincount(tick, by_slot, self.times.size).astype(np.float64)

    def converged_after(self, most: float = 0.95, over: int = 1) -> int | None:
        """Return the number of slots after which every utilization stays at most `most`.

        The result is None if a worker exceeds `most` in the last slot. Each utilization is the
        mean over the last `over` slots, to reduce random variation. A last slot that the end of
        the stream cuts short is ignored.
        """
        slots = self.moves.size
        if slots > 1 and self.end < (slots - 0.02) * self.slot:
            slots -= 1
        reach = np.zeros((slots + 1, self.cluster.workers))
        reach[1:] = self.every(self.slot).utilization[:slots].cumsum(axis=0)
        begins = np.maximum(np.arange(1, reach.shape[0]) - over, 0)
        spans = np.arange(1, reach.shape[0]) - begins
        mean = (reach[1:] - reach[begins]) / spans[:, None]
        above = np.flatnonzero(mean.max(axis=1) > most)
        after = int(above[-1]) + 1 if above.size else 0
        return after if after < slots else None

    # Totals

    @property
    def messages(self) -> int:
        """The number of messages that arrived."""
        return int(self.tally.arrivals.sum())

    @property
    def loads(self) -> Counts:
        """The number of messages that each worker got."""
        loads: Counts = self.tally.arrivals.sum(axis=0)
        return loads

    @property
    def imbalance(self) -> float:
        """The normalized imbalance of the loads, relative to the capacities of the workers."""
        return metrics.normalized_imbalance(self.loads, self.capacity.sum(axis=0))

    @property
    def memory_cost(self) -> float:
        """The key copies of all workers, divided by the number of different keys."""
        seen = int(np.count_nonzero(self.tally.held.any(axis=1)))
        return float(self.tally.new_keys.sum() / seen) if seen else 0.0

    def copies_of(self, key: int) -> int:
        """Return the number of workers that have held this key."""
        return int(np.bitwise_count(self.tally.held[key]).sum())

    @property
    def mean_latency(self) -> float:
        """The mean latency of all messages in seconds."""
        return float(self.tally.latency.sum() / self.messages) if self.messages else 0.0

    def total_latency_quantile(self, rank: float) -> float:
        """Return the quantile of the latency of all messages; the error is at most 2 %."""
        return _quantile(self.tally.latencies.sum(axis=0), rank)


def _surplus(utilization: Floats) -> Floats:
    """Return the largest divided by the mean, minus 1, at each time; 0 without messages."""
    mean = utilization.mean(axis=1)
    surplus: Floats = np.divide(
        utilization.max(axis=1), mean, out=np.ones_like(mean), where=mean > 0
    )
    return surplus - 1


def _joined(by_tick: NDArray[Any], ticks: int) -> NDArray[Any]:
    """Sum each `ticks` rows; the last row counts messages after the end and is kept."""
    sums = np.add.reduceat(by_tick[:-1], np.arange(0, by_tick.shape[0] - 1, ticks), axis=0)
    return np.concatenate([sums, by_tick[-1:]])


def spread_over_workers(series: NDArray[np.floating] | Counts) -> tuple[Floats, Floats]:
    """Return max - min and max - mean over the workers at each time, as the paper plots them."""
    values = np.asarray(series, np.float64)
    empty = np.isnan(values).all(axis=1, keepdims=True)
    filled = np.where(empty, 0.0, values)
    greatest = np.nanmax(filled, axis=1)
    return greatest - np.nanmin(filled, axis=1), greatest - np.nanmean(filled, axis=1)


def _quantile(counts: NDArray[np.integer], rank: float) -> float:
    reached = counts.cumsum()
    if reached[-1] == 0:
        return float("nan")
    number = np.searchsorted(reached, rank * reached[-1], "left")
    return float(latency_of_bin(np.array([number]))[0])
