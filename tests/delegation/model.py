"""A small model with one source and first-come-first-served workers, slot by slot."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from steelyard import schemes
from steelyard.assignment import Assignment, Move
from steelyard.datasets import zipf_ranks
from steelyard.delegation import Measurement, Rules
from steelyard.hashing import hash_keys

Floats = NDArray[np.float64]


def capacities(workers: int, fast: int, times: float, total: float) -> Floats:
    """Return the capacities of a cluster {y, z}, in messages per slot.

    `fast` of the workers are `times` as fast as the others.
    """
    relative = np.ones(workers)
    relative[:fast] = times
    speeds: Floats = relative / relative.sum() * total
    return speeds


class Model:
    """PoRC distributes messages over virtual workers, and workers process them in order."""

    def __init__(
        self,
        rules: Rules,
        *,
        workers: int = 10,
        each: int = 100,
        per_slot: int = 12_000,
        load: float = 0.8,
        seed: int = 0,
    ) -> None:
        self.workers = workers
        self.per_slot = per_slot
        self.total = per_slot / load
        self.source = rules.source(Assignment.equal(workers, each))
        self.sides = [rules.worker(slot=1.0) for _ in range(workers)]
        self.router = schemes.named("porc").router(workers * each, seed)
        ranks = zipf_ranks(per_slot * 50, skew=1.0, seed=seed)
        self.hashes = hash_keys(pa.array(ranks, pa.int64())).reshape(50, per_slot)
        self.rng = np.random.default_rng(seed)
        self.backlog = np.zeros(workers)
        self.slots = 0

    def slot(self, speeds: Floats) -> tuple[Floats, list[Move]]:
        """Simulate one slot; return the utilization of each worker, and the moves."""
        virtuals = self.router.route_many(self.hashes[self.slots % 50])
        owners = self.source.assignment.owners[virtuals]
        arrivals = np.bincount(owners, minlength=self.workers)
        finished = np.minimum(self.backlog + arrivals, speeds)
        self.backlog += arrivals - finished
        self.slots += 1
        owned = [self.source.assignment.count(w) for w in range(self.workers)]
        moves: list[Move] = []
        for w in self.rng.permutation(self.workers).tolist():
            seen = Measurement(
                arrivals=arrivals[w], backlog=self.backlog[w], service_time=1 / speeds[w]
            )
            report = self.sides[w].report(seen, owned[w], now=float(self.slots))
            if report is not None and finished[w] >= 1:  # no message, no acknowledgment
                moves += self.source.acknowledge(w, report)
        utilization: Floats = arrivals / speeds
        return utilization, moves

    def slots_to_converge(
        self, fast: int, times: float, *, slots: int = 200, limit: float = 0.95
    ) -> int | None:
        """Return the first slot from which no utilization exceeds the limit; None if never."""
        speeds = capacities(self.workers, fast, times, self.total)
        highest = np.array([self.slot(speeds)[0].max() for _ in range(slots)])
        over = np.flatnonzero(highest > limit)
        converged = int(over[-1]) + 1 if over.size else 0
        return converged if converged < slots - 20 else None
