"""The plan of a join: every pair of rows meets in one bin, and bins keep their shares."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.cells import WHOLE
from steelyard.plans.join_plan import JoinPlan

COUNTS = st.lists(st.sampled_from([0, 1, 3, 50, 1000, 10**6]), min_size=12, max_size=12)
SALTS = st.integers(0, 2**64 - 1)


@st.composite
def join_plans(draw):
    """Draw a routing plan for random pairs, and the plan of a join with its bins."""
    pairs, big, small = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    plan = Planner(draw(st.integers(1, 12)), buckets=12).update(pairs)
    return plan, draw(st.sampled_from([JoinPlan.by_big(plan), JoinPlan.of(plan, big, small)]))


def column_of(plan, bucket, salt):
    """Return the column of a row of `small`."""
    return int(plan.columns.route(np.array([bucket]), np.array([salt], np.uint64))[0])


def bins_of_big(plan, bucket, salt):
    """Return the bins of a row of `big`, one for each column of its bucket."""
    columns = [cell.bin for cell in plan.columns.cells(bucket)]
    return plan.cells.route(np.array(columns), np.full(len(columns), salt, np.uint64)).tolist()


@given(join_plans(), st.integers(0, 11), SALTS, SALTS)
def test_each_pair_of_rows_meets_in_exactly_one_bin(drawn, bucket, salt, other):
    """A bin is listed once for each copy that it gets."""
    _, plan = drawn
    column = column_of(plan, bucket, other)
    bins = [cell.bin for cell in plan.cells.cells(column)]
    assert len(set(bins)) == len(bins)
    assert sum(bins.count(where) for where in bins_of_big(plan, bucket, salt)) == 1


@given(join_plans())
def test_a_bin_has_the_pairs_that_the_routing_plan_gives_it(drawn):
    """The share of a cell is that of its column times its own."""
    routing, plan = drawn
    for bucket in range(routing.buckets):
        shares = [
            (cell.bin, column.weight * cell.weight)
            for column in plan.columns.cells(bucket)
            for cell in plan.cells.cells(column.bin)
        ]
        expected = [(cell.bin, cell.weight) for cell in routing.cells(bucket)]
        assert [where for where, _ in shares] == [where for where, _ in expected]
        assert [w for _, w in shares] == pytest.approx([w for _, w in expected], abs=1e-8)


@given(st.integers(1, 30), st.integers(0, 10**6), st.integers(0, 10**6))
def test_few_rows_are_moved(bins, big, small):
    """No other number of columns of equal size would move fewer rows."""
    cells = [(i, (i + 1) * WHOLE // bins) for i in range(bins)]
    plan = JoinPlan.of(RoutingPlan.from_cells(bins, [cells]), [big], [small])
    moved = [big * c + small * bins / c for c in range(1, bins + 1)]
    assert moved[plan.columns.bins - 1] == min(moved)


def test_rows_of_a_small_frame_are_copied_and_not_divided():
    """A dimension table has one row for the hot key."""
    routing = Planner(8, buckets=16).update([900, *[10] * 15])
    plan = JoinPlan.of(routing, [900, *[10] * 15], [2] * 16)
    assert not plan.has_grids
    assert plan.cells == routing


def test_a_bin_with_two_cells_of_a_bucket_stays_in_one_column():
    """In two columns, it would get the same pair twice."""
    twice = [[(0, WHOLE // 4), (1, WHOLE // 2), (0, WHOLE)]]
    plan = JoinPlan.of(RoutingPlan.from_cells(2, twice), [100], [100])
    assert not plan.has_grids
