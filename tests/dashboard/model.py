"""Runs for tests: random ones, and one of a real controller."""

import numpy as np
from hypothesis import strategies as st

from steelyard.assignment import Assignment
from steelyard.control.controller import Controller
from steelyard.control.history import HotKeyShare, Slot, WorkerSlot
from steelyard.control.reports import SourceReport, WorkerReport

NASTY = "<script>document.title='owned'</script>"


def slot(number, owned, *, moves=(), owners=(), messages=None, hot=(), states=None, time=None):
    """Return a slot of one second; `messages` has one number for each worker."""
    messages = [10] * len(owned) if messages is None else messages
    total = max(1, sum(messages))
    workers = tuple(
        WorkerSlot(
            worker=worker,
            messages=got,
            share=got / total,
            utilization=got / 100,
            state=(states or ["normal"] * len(owned))[worker],
            virtual_workers=count,
            keys=3,
            p50=0.5,
            p99=1.5,
            service=0.01 if got else None,
            backlog=float(worker),
        )
        for worker, (got, count) in enumerate(zip(messages, owned, strict=True))
    )
    return Slot(
        slot=number,
        batch=number,
        time=float(number) if time is None else time,
        seconds=1.0,
        messages=sum(messages),
        workers=workers,
        moves=tuple(moves),
        hot_keys=tuple(HotKeyShare(key, 0.5) for key in hot),
        version=number,
        p50=0.5,
        p99=1.5,
        owners=tuple(owners),
    )


@st.composite
def histories(draw):
    """Draw slots with moves, and the owners in each slot; some slots record the owners."""
    workers, each = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    assignment = Assignment.equal(workers, each)
    slots, owners = [], []
    first = draw(st.integers(1, 1000))
    for number in range(draw(st.integers(1, 12))):
        before = assignment.owners.tolist()
        counts = [assignment.count(worker) for worker in range(workers)]
        moves = []
        for _ in range(draw(st.integers(0, 3))):
            giver, taker = draw(st.permutations(range(workers)))[:2]
            if assignment.count(giver):
                moves += [(m.virtual, m.giver, m.taker) for m in assignment.give(giver, taker)]
        recorded = before if draw(st.booleans()) else ()
        messages = draw(st.lists(st.integers(0, 50), min_size=workers, max_size=workers))
        slots.append(slot(first + number, counts, moves=moves, owners=recorded, messages=messages))
        owners.append(before)
    return slots, owners


def controlled(store, batches, speeds=(1.0, 1.0, 1.0, 0.3), key="hot", loop=None):
    """Run a controller on workers of these speeds, whose load is what they own."""
    loop = loop or Controller(
        len(speeds), 10, delegation=True, store=store, buckets=64, capacities=None
    )
    for _ in range(batches):
        batch = loop.last_batch + 1
        owners = loop.version.owners
        rows = 100 * np.bincount(owners, minlength=len(speeds))
        reports = [
            WorkerReport(batch, worker, int(n), float(n / speed / 1000), 1, ((80, int(n)),))
            for worker, (n, speed) in enumerate(zip(rows, speeds, strict=True))
        ]
        counts = np.ones(64, np.float32)
        sources = [SourceReport(batch, 0, 0, counts, ((key, 400), ("other", 40)))]
        loop.finish_batch(batch, 1.0, sources, reports, now=1e9 + batch)
    return loop
