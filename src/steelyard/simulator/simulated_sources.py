"""The sources of a simulation: each has its own router and its own assignment.

If plans decide, all sources share one plan.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.assignment import Assignment, Move
from steelyard.delegation import Report, SourceSide
from steelyard.hashing import Hashes, buckets_of, seed_mask, spread
from steelyard.plans import Planner, RoutingPlan
from steelyard.schemes import Router, Scheme
from steelyard.simulator.grouping import ConsistentGrouping, Grouping, Plans


class SimulatedSources:
    """All sources; messages go to them in turn, and each uses only its own state.

    Args:
        grouping: The rule by which sources choose workers.
        sources: The number of sources.
        workers: The number of workers.
        seed: The seed of the hash functions.
    """

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
        self._planned: _PlannedRouting | None = None
        self._routers: list[Router] = []
        if isinstance(grouping.scheme, Scheme):
            # One seed for all sources, because they share the hash functions of a key's choices.
            self._routers = [grouping.scheme.router(bins, seed) for _ in range(sources)]
        else:
            self._planned = _PlannedRouting(grouping.scheme, bins, seed)
        self.owners: NDArray[np.int32] = np.tile(owners, (sources, 1))
        self._owned = np.bincount(owners, minlength=workers) * sources

    def route(self, first_message: int, hashes: Hashes) -> NDArray[np.int32]:
        """Return the bins of consecutive messages; message i belongs to source i mod count."""
        if self._planned is not None:
            return self._planned.route(first_message, hashes)
        if self.count == 1:
            return self._routers[0].route_many(hashes)
        bins = np.empty(hashes.size, np.int32)
        for source, router in enumerate(self._routers):
            mine = slice((source - first_message) % self.count, None, self.count)
            bins[mine] = router.route_many(hashes[mine])
        return bins

    def end_slot(self) -> None:
        """Update the plan for the next slot if plans decide."""
        if self._planned is not None:
            self._planned.end_slot()

    @property
    def plan(self) -> RoutingPlan | None:
        """The current plan; None if a scheme decides."""
        return self._planned.plan if self._planned is not None else None

    @property
    def probes(self) -> int:
        """The number of bins whose load the routers have checked."""
        return sum(router.probes for router in self._routers)

    def acknowledge(self, source: int, worker: int, report: Report) -> Sequence[Move]:
        """Give an acknowledgment to a source; return the moves of virtual workers it makes."""
        moves = self._sides[source].acknowledge(worker, report)
        for move in moves:
            self.owners[source, move.virtual] = move.taker
            self._owned[move.giver] -= 1
            self._owned[move.taker] += 1
        return moves

    @property
    def have_pending_giver(self) -> bool:
        """Whether at any source a busy worker waits to give a virtual worker."""
        return any(side.has_pending_giver for side in self._sides)

    @property
    def owned(self) -> NDArray[np.float64]:
        """The number of virtual workers of each worker, on average over the sources."""
        return self._owned / self.count


class _PlannedRouting:
    def __init__(self, plans: Plans, bins: int, seed: int) -> None:
        self._planner = Planner(bins, plans.epsilon, plans.buckets, decay=plans.decay)
        self._mask = seed_mask(seed)
        self._counts = np.zeros(plans.buckets, np.int64)

    @property
    def plan(self) -> RoutingPlan:
        return self._planner.plan

    def route(self, first_message: int, hashes: Hashes) -> NDArray[np.int32]:
        buckets = buckets_of(hashes ^ self._mask, self._counts.size)
        self._counts += np.bincount(buckets, minlength=self._counts.size)
        return self.plan.route(buckets, spread(np.arange(hashes.size) + first_message))

    def end_slot(self) -> None:
        if self._counts.any():
            self._planner.update(self._counts)
            self._counts[:] = 0
