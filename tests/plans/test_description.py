"""The description of a plan."""

import numpy as np
import pytest
from hypothesis import assume, given

from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.cells import WHOLE
from tests.plans.strategies import PLANNERS, bucket_counts


def described(counts, bins=4, **settings):
    """Return the description of a plan for these counts."""
    return Planner(bins, buckets=len(counts), **settings).update(counts).describe()


@given(PLANNERS, bucket_counts(), bucket_counts())
def test_a_description_agrees_with_the_plan(planner, counts, more):
    """Every number agrees with the cells, for the current counts plus the decayed ones."""
    planner.update(counts)
    plan = planner.update(more)
    seen = counts * planner.decay + more
    assume(seen.any())
    description = plan.describe()
    share = planner.capacities / planner.capacities.sum()
    assert {hot.bucket: hot.workers for hot in description.hot} == {
        bucket: len(cells) for bucket, cells in plan.splits.items()
    }
    shares = [hot.share for hot in description.hot]
    assert shares == sorted(shares, reverse=True)
    assert shares == pytest.approx([seen[hot.bucket] / seen.sum() for hot in description.hot])
    assert description.by_plan == pytest.approx((plan.shares_of(seen) / share).max())
    used = np.flatnonzero(seen)
    assert description.bucket_copies == sum(len(plan.cells(b)) for b in used)
    assert description.copies_per_key == plan.copies[used].mean()


def test_key_grouping_is_the_bucket_modulo_the_workers():
    """The ratio is to the fair share, which is proportional to the capacities."""
    counts = [30, 10, 0, 10, 30, 0, 10, 10]  # workers 0 to 3 get 60, 10, 10 and 20 of 100
    assert 0.6 / 0.25 == pytest.approx(described(counts).by_key_grouping)
    uneven = described(counts, capacities=[6, 2, 1, 1])
    assert 0.2 / 0.1 == pytest.approx(uneven.by_key_grouping)
    assert uneven.by_plan <= 1.01 + 1e-9


def test_a_description_is_short():
    """It lists at most ten hot buckets, in lines of no more than 80 characters."""
    counts = np.concatenate((np.arange(12.0, 0, -1) * 1e5, np.ones(2**18 - 12)))
    lines = str(described(counts, bins=1000)).splitlines()
    assert max(map(len, lines)) <= 80
    assert "  and 2 more" == lines[-1]
    assert 15 == len(lines)
    assert "hot              no bucket is split" == str(described(np.ones(64))).splitlines()[-1]


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (RoutingPlan.from_cells(2, [[(0, WHOLE)]]), "read from JSON or made from cells has no"),
        (RoutingPlan.from_json(Planner(2).plan.to_json()), "read from JSON or made from cells"),
        (Planner(2).plan, "this plan was made without counts; pass counts to Planner.update"),
    ],
    ids=["cells", "JSON", "no counts"],
)
def test_a_plan_without_counts_cannot_be_described(plan, sentence):
    """The error message says why and what to do."""
    with pytest.raises(ValueError, match=sentence):
        plan.describe()
