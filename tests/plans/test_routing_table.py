"""A table of integers leads to the bins of its plan."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.cells import WHOLE

SALTS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)


def found(table, bucket, salt):
    """Return the bin of a message, as the expression of Spark finds it."""
    at, place = int(table.entries[bucket]), salt >> 32
    if at < 0:
        at = ~at + (place >> table.shift)
        for _ in range(table.steps):
            at = (int(table.entries[at]) + place) >> 32
    return int(table.entries[at])


@st.composite
def plans(draw):
    """Return plans with any cells, some of them as small as possible and close to each other."""
    ends = st.sets(st.integers(1, WHOLE - 1) | st.integers(2**31 - 4, 2**31 + 4), max_size=8)
    bins = st.integers(0, 8)
    buckets = draw(st.lists(ends, min_size=1, max_size=6))
    cells = [[(draw(bins), end) for end in (*sorted(own), WHOLE)] for own in buckets]
    return RoutingPlan.from_cells(9, cells)


@given(plan=plans(), salts=SALTS, steps=st.sampled_from([None, 4]))
def test_a_table_gives_the_bins_of_route(plan, salts, steps):
    """The bins are the same for random salts, and next to the end of each cell."""
    labels = np.arange(plan.bins) * 7 + 3
    table = plan.table(labels, steps)
    assert steps in (None, table.steps)
    places = {end + more for end in plan.ends.tolist() for more in (-1, 0) if end + more < WHOLE}
    salts = [*salts, *(place << 32 for place in places)]
    for bucket in range(plan.buckets):
        bins = plan.route(np.full(len(salts), bucket), np.array(salts, np.uint64))
        assert labels[bins].tolist() == [found(table, bucket, salt) for salt in salts]


def test_tables_stay_small_for_many_workers():
    """A bucket with many cells does not enlarge the parts of buckets with two cells."""
    counts = np.ones(8192)
    counts[0] = 8192 * 3 / 7
    plan = Planner(4000).update(counts)
    table = plan.table()
    assert len(plan.splits) > 500
    assert table.entries.size < 2**18
    assert table.steps <= 6


def test_very_unequal_capacities_need_few_steps():
    """Cells that are much smaller than others do not make the lookup long."""
    capacities = [1000.0, *[1.0] * 23]
    plan = Planner(24, capacities=capacities).update(np.eye(1, 8192)[0])
    assert len(plan.splits[0]) == 24
    assert plan.table().steps <= 2
    assert plan.table().entries.size < 2**15


def test_a_plan_without_split_buckets_needs_no_steps():
    """Its table has the bins of all buckets."""
    plan = Planner(4, buckets=8).plan
    table = plan.table()
    assert table.steps == 0
    assert plan.bins_of.tolist() == table.entries[table.entries[:8]].tolist()
