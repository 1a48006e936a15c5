"""A plain twin of the simulator: one event at a time, a queue of messages at each worker."""

import heapq
import math
from collections import deque

import numpy as np
import pyarrow as pa

from steelyard.assignment import Assignment
from steelyard.delegation import Measurement
from steelyard.hashing import hash_keys, seed_mask
from steelyard.plans import Planner
from steelyard.simulator import ConsistentGrouping, Plans

FINISH, SLOT_END, ARRIVAL = 0, 1, 2
GOLDEN = 0x9E3779B97F4A7C15


class PlannedRouter:
    """Route the messages of all sources by one plan, one message at a time."""

    def __init__(self, plans, bins):
        self.planner = Planner(bins, plans.epsilon, plans.buckets, decay=plans.decay)
        self.counts = [0] * plans.buckets
        self.number = 0

    def route(self, key_hash):
        """Return the bin of the cell that contains the hashed number of the message."""
        bucket = (key_hash ^ int(seed_mask(0))) % len(self.counts)
        self.counts[bucket] += 1
        point = (self.number * GOLDEN % 2**64) / 2**64
        self.number += 1
        for cell in self.planner.plan.cells(bucket):
            point -= cell.weight
            if point < 0:
                break
        return cell.bin

    def end_slot(self):
        """Update the plan for the next slot."""
        if sum(self.counts):
            self.planner.update(self.counts)
        self.counts = [0] * len(self.counts)


def routers_of(scheme, bins, sources):
    """Return a router for each source, or the same router for all if plans decide."""
    if isinstance(scheme, Plans):
        return [PlannedRouter(scheme, bins)] * sources
    return [scheme.router(bins, 0) for _ in range(sources)]


def simulate(stream, cluster, grouping, *, sources, slot):
    """Return finish times by message, moves as (slot, move) and queue lengths at slot ends.

    Events at the same time have an order: messages finish, then a slot ends, then messages arrive.
    """
    n = cluster.workers
    delegated = isinstance(grouping, ConsistentGrouping)
    bins = n * grouping.virtual_workers if delegated else n
    routers = routers_of(grouping.scheme, bins, sources)
    sides, workers = [], []
    if delegated:
        equal = Assignment.equal(n, grouping.virtual_workers)
        sides = [grouping.rules.source(equal.copy()) for _ in range(sources)]
        workers = [grouping.rules.worker(slot) for _ in range(n)]
    hashes = hash_keys(pa.array(stream.key_numbers, pa.int64()))
    queues = [deque() for _ in range(n)]
    reports, busy_since, busy = [None] * n, [None] * n, [0.0] * n
    arrivals, work_seconds = [0] * n, [0.0] * n
    finished, moves, lengths = {}, [], []
    changes = [(c.at, c.speeds) for c in cluster.changes]

    def end_of(worker, start, work=1.0):
        """Return the time at which work that starts at `start` ends, with all speed changes."""
        while True:
            speed, until = cluster.speeds[worker], float("inf")
            for at, speeds in changes:
                if at <= start:
                    speed = speeds[worker]
                else:
                    until = min(until, at)
            if start + work / speed <= until:
                return start + work / speed
            work -= (until - start) * speed
            start = until

    slots = int(stream.times[-1] / slot) + 1
    events = [(float(t), ARRIVAL, i) for i, t in enumerate(stream.times)]
    events += [((k + 1) * slot, SLOT_END, k) for k in range(slots)]
    heapq.heapify(events)
    free_at = [0.0] * n
    while events:
        now, kind, number = heapq.heappop(events)
        if kind == ARRIVAL:
            source = number % sources
            b = routers[source].route(int(hashes[number]))
            w = int(sides[source].assignment.owners[b]) if delegated else b
            if not queues[w]:
                busy_since[w] = now
            start = max(free_at[w], now)
            free_at[w] = end_of(w, start)
            arrivals[w] += 1
            work_seconds[w] += free_at[w] - start
            queues[w].append(number)
            heapq.heappush(events, (free_at[w], FINISH, w))
        elif kind == FINISH:
            w = number
            message = queues[w].popleft()
            finished[message] = now
            if not queues[w]:
                busy[w] += now - busy_since[w]
            source = message % sources
            if delegated and reports[w] is not None:
                made = sides[source].acknowledge(w, reports[w])
                during = max(0, math.ceil(now / slot) - 1)  # a slot includes its end
                moves += [(during, move) for move in made if during < slots]
        else:
            lengths.append([len(queue) for queue in queues])
            for w in range(n if delegated else 0):
                if queues[w]:
                    busy[w] += now - busy_since[w]
                    busy_since[w] = now
                owned = np.mean([side.assignment.count(w) for side in sides])
                mean = work_seconds[w] / arrivals[w] if arrivals[w] else end_of(w, now) - now
                seen = Measurement(
                    arrivals=arrivals[w], backlog=len(queues[w]), service_time=mean, busy=busy[w]
                )
                reports[w] = workers[w].report(seen, owned, now)
            arrivals, work_seconds, busy = [0] * n, [0.0] * n, [0.0] * n
            if isinstance(grouping.scheme, Plans):
                routers[0].end_slot()
    return [finished[i] for i in range(stream.messages)], moves, lengths
