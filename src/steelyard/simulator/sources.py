"""The sources: each with its own routers, its own assignment and its own idea of the workers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.assignment import Assignment, Move
from steelyard.delegation import Report, SourceSide
from steelyard.schemes import Router
from steelyard.simulator.grouping import ConsistentGrouping, Grouping


class Sources:
    """Messages go to the sources in turn; each decides by what it has seen itself."""

    def __init__(self, grouping: Grouping, sources: int, workers: int, seed: int) -> None:
        self.count = sources
        self._sides: list[SourceSide] = []
        bins = workers
        if isinstance(grouping, ConsistentGrouping):
            bins = workers * grouping.virtual_workers
            equal = Assignment.equal(workers, grouping.virtual_workers)
            self._sides = [grouping.rules.source(equal.copy()) for _ in range(sources)]
            owners = equal.owners
        else:
            owners = np.arange(workers, dtype=np.int32)
        # One seed for all: the sources agree on a key's choices, as hash functions are shared.
        self._routers: list[Router] = [grouping.scheme.router(bins, seed) for _ in range(sources)]
        self.owners: NDArray[np.int32] = np.tile(owners, (sources, 1))

    def route(self, first_message: int, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The bins of consecutive messages; message i belongs to source i mod count."""
        if self.count == 1:
            return self._routers[0].route_many(hashes)
        bins = np.empty(hashes.size, np.int32)
        for source, router in enumerate(self._routers):
            mine = slice((source - first_message) % self.count, None, self.count)
            bins[mine] = router.route_many(hashes[mine])
        return bins

    def acknowledge(self, source: int, worker: int, report: Report) -> Sequence[Move]:
        """Let a source take note of an acknowledgement; it may move virtual workers."""
        moves = self._sides[source].acknowledge(worker, report)
        for move in moves:
            self.owners[source, move.virtual] = move.taker
        return moves

    def owned(self, workers: int) -> NDArray[np.float64]:
        """Virtual workers of each worker, on average over the sources."""
        counts: NDArray[np.int64] = np.bincount(self.owners.ravel(), minlength=workers)
        return counts / self.count
