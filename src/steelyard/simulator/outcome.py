"""What a simulation tells: series over time, and totals."""

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
    """A finished simulation. Series have a row per tick; those by worker a column per worker."""

    cluster: Cluster
    begins: Floats = field(repr=False)
    speeds: Floats = field(repr=False)
    slot: float
    tick: float
    tally: Tally = field(repr=False)
    moves: Counts = field(repr=False)
    """Virtual workers moved, by slot."""
    signals: Counts = field(repr=False)
    """Reports that reached a source, by slot."""
    owned: Floats = field(repr=False)
    """Virtual workers by slot and worker, on average over the sources."""
    aggregated: Counts = field(repr=False)
    """Partial states sent to the aggregator, by period."""
    probes: int = 0
    """Bins that the sources looked at."""
    plan: RoutingPlan | None = field(default=None, repr=False)
    """The last plan, where plans are made."""
    end: float = 0.0
    """When the last message arrived."""
    states: NDArray[np.int8] = field(default_factory=lambda: np.zeros((0, 0), np.int8), repr=False)
    """Where virtual workers move, by slot and worker: -1 for idle, 0 for normal, 1 for busy."""
    first_moves: Counts = field(default_factory=lambda: np.zeros((0, 4), np.int64), repr=False)
    """What moved at the first source, in order: slot, virtual worker, giver, taker."""

    @cached_property
    def times(self) -> Floats:
        """The end of each tick, in seconds."""
        ends: Floats = (np.arange(self.tally.arrivals.shape[0] - 1) + 1) * self.tick
        return ends

    @cached_property
    def queue_length(self) -> Counts:
        """Messages that have arrived and are not finished at the end of each tick."""
        return (self.tally.arrivals - self.tally.finishes)[:-1].cumsum(axis=0)

    @cached_property
    def latency(self) -> Floats:
        """Mean seconds from arrival to finish of those that finished in a tick; NaN if none."""
        finishes = self.tally.finishes[:-1]
        mean: Floats = np.full(finishes.shape, np.nan)
        np.divide(self.tally.latency[:-1], finishes, out=mean, where=finishes > 0)
        return mean

    def latency_quantile(self, rank: float) -> Floats:
        """The latency below which this part of the messages of a tick finished, over all workers.

        Right to 2 %; NaN for a tick in which nothing finished.
        """
        return np.array([_quantile(row, rank) for row in self.tally.latencies[:-1]])

    @cached_property
    def capacity(self) -> Floats:
        """Messages that each worker can do in each tick."""
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
        """Messages that arrived in a tick against what the worker can do in it."""
        utilization: Floats = self.tally.arrivals[:-1] / self.capacity
        return utilization

    @cached_property
    def memory(self) -> Counts:
        """Different keys that each worker has held by the end of each tick."""
        return self.tally.new_keys[:-1].cumsum(axis=0)

    def every(self, seconds: float) -> "Outcome":
        """The same with longer ticks, of a whole number of the old ones: per slot, per hour."""
        ticks = round(seconds / self.tick)
        if ticks < 1 or abs(ticks * self.tick - seconds) > 1e-9 * seconds:
            raise ValueError(
                f"seconds must be a whole number of times tick, {self.tick} s, got {seconds} s"
            )
        by_tick = ("arrivals", "finishes", "latency", "new_keys", "latencies")
        joined = {name: _joined(getattr(self.tally, name), ticks) for name in by_tick}
        return replace(self, tick=seconds, tally=self.tally._replace(**joined))

    def series(self) -> dict[str, Floats]:
        """Everything over time, a value per tick: what the paper's figures plot, and more.

        Of what differs between workers there is the difference of the greatest and the least
        (`_max_min`), and of the greatest and the mean (`_max_avg`). Moves and signals are told at
        the ends of slots.
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
        """Slots until no worker gets more than `most` of what it can do, from then to the end.

        None if that is not so in the last slot either. With `over` the mean of so many slots
        counts: less is left to chance. A last slot in which the stream ends says nothing.
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
        """Messages that arrived."""
        return int(self.tally.arrivals.sum())

    @property
    def loads(self) -> Counts:
        """Messages that each worker got."""
        loads: Counts = self.tally.arrivals.sum(axis=0)
        return loads

    @property
    def imbalance(self) -> float:
        """The most loaded worker's surplus over the mean, as a part of the mean."""
        return metrics.normalized_imbalance(self.loads, self.capacity.sum(axis=0))

    @property
    def memory_cost(self) -> float:
        """Keys held by all workers, per different key."""
        seen = int(np.count_nonzero(self.tally.held.any(axis=1)))
        return float(self.tally.new_keys.sum() / seen) if seen else 0.0

    def copies_of(self, key: int) -> int:
        """Workers that have held this key."""
        return int(np.bitwise_count(self.tally.held[key]).sum())

    @property
    def mean_latency(self) -> float:
        """Mean seconds from arrival to finish, of all messages."""
        return float(self.tally.latency.sum() / self.messages) if self.messages else 0.0

    def total_latency_quantile(self, rank: float) -> float:
        """The latency below which this part of all messages finished; right to 2 %."""
        return _quantile(self.tally.latencies.sum(axis=0), rank)


def _surplus(utilization: Floats) -> Floats:
    """The greatest over the mean, less 1, at each time; 0 where there is nothing."""
    mean = utilization.mean(axis=1)
    surplus: Floats = np.divide(
        utilization.max(axis=1), mean, out=np.ones_like(mean), where=mean > 0
    )
    return surplus - 1


def _joined(by_tick: NDArray[Any], ticks: int) -> NDArray[Any]:
    """Sums of so many rows; the last row, for after the end, stays apart."""
    sums = np.add.reduceat(by_tick[:-1], np.arange(0, by_tick.shape[0] - 1, ticks), axis=0)
    return np.concatenate([sums, by_tick[-1:]])


def spread_over_workers(series: NDArray[np.floating] | Counts) -> tuple[Floats, Floats]:
    """Max - min and max - mean over the workers, at each time: what the paper plots."""
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
