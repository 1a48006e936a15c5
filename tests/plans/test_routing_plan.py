"""A plan as a value: where messages go, what moves, and its JSON."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steelyard.hashing import spread
from steelyard.plans import Planner, RoutingPlan
from steelyard.plans.cells import WHOLE
from tests.plans.strategies import PLANNERS, bucket_counts


@given(
    PLANNERS, bucket_counts(), st.lists(st.tuples(st.integers(0, 63), st.integers(0, 2**64 - 1)))
)
def test_routing_follows_the_cells(planner, counts, messages):
    """The vectorized look-up and a walk over the cells agree on every message."""
    plan = planner.update(counts)
    expected = []
    for bucket, salt in messages:
        left = (salt >> 32) / 2**32
        for cell in plan.cells(bucket):
            left -= cell.weight
            if left < -1e-12 or cell == plan.cells(bucket)[-1]:
                expected.append(cell.bin)
                break
    buckets = np.array([bucket for bucket, _ in messages], np.int64)
    salts = np.array([salt for _, salt in messages], np.uint64)
    assert expected == plan.route(buckets, salts).tolist()
    assert expected == plan.route(buckets, salts.view(np.int64)).tolist()


@settings(max_examples=20)
@given(PLANNERS, bucket_counts())
def test_messages_arrive_as_the_weights_say(planner, counts):
    """Of many messages of a bucket each cell gets its weight."""
    assume(counts.any())
    plan = planner.update(counts)
    bucket = int(counts.argmax())
    routed = plan.route(np.full(20_000, bucket), spread(np.arange(20_000)))
    got = np.bincount(routed, minlength=plan.bins) / 20_000
    for cell in plan.cells(bucket):
        assert got[cell.bin] == pytest.approx(cell.weight, abs=1e-3)


def test_what_moves_is_what_goes_elsewhere():
    """Whole and split buckets, against the bins that messages really go to."""
    one = RoutingPlan.from_cells(3, [[(0, WHOLE)], [(0, WHOLE // 2), (1, WHOLE)], [(2, WHOLE)]])
    two = RoutingPlan.from_cells(3, [[(1, WHOLE)], [(0, WHOLE // 4), (2, WHOLE)], [(2, WHOLE)]])
    assert 0.5 * 1 + 0.25 * 0.75 == two.moved_from(one, [50, 25, 25])
    assert 0 == one.moved_from(one, [50, 25, 25]) == one.moved_from(two, [0, 0, 0])


def test_plans_over_other_buckets_cannot_be_compared():
    """How much moved is asked of plans over the same buckets."""
    with pytest.raises(ValueError, match="plans over 64 and 32 buckets cannot be compared"):
        Planner(2, buckets=64).plan.moved_from(Planner(2, buckets=32).plan, np.ones(64))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bins": 1}'])
def test_what_is_not_a_plan(text):
    """Other JSON is not taken for a plan."""
    with pytest.raises(ValueError, match="this is not the JSON of a routing plan"):
        RoutingPlan.from_json(text)


@pytest.mark.parametrize(
    "buckets",
    [
        [5],
        [-1],
        [99999999999],
        [0.5],
        [[]],
        [[0.7, WHOLE]],
        [[0, 10, 1, 20]],
        [[0, WHOLE, 1, 10]],
        [[0, 10, 1]],
        ["x"],
    ],
)
def test_a_broken_plan_is_not_read(buckets):
    """Cells must name bins and end, rising, at the whole."""
    text = json.dumps({"bins": 2, "buckets": buckets, "shares": [0.5, 0.5], "version": 1})
    with pytest.raises(ValueError, match="this is not the JSON of a routing plan"):
        RoutingPlan.from_json(text)


@pytest.mark.parametrize(
    ("buckets", "salts", "error"),
    [
        (np.array([0]), np.array([0.5]), TypeError),
        (np.array([0]), np.array([1], np.int32), TypeError),
        (np.array([0.0]), np.array([1]), TypeError),
        (np.array([-1]), np.array([1]), IndexError),
        (np.array([64]), np.array([1]), IndexError),
    ],
)
def test_bad_messages(buckets, salts, error):
    """Only whole numbers of buckets that exist and 64-bit salts are routed."""
    with pytest.raises(error):
        Planner(2, buckets=64).plan.route(buckets, salts)


@given(PLANNERS, bucket_counts(), st.sets(st.integers(0, 63)))
def test_buckets_can_be_made_whole(planner, counts, whole):
    """Those that are named go where their largest part went; the others stay as they are."""
    plan = planner.update(counts)
    made = plan.with_whole(whole)
    for bucket in range(64):
        cells = plan.cells(bucket)
        if bucket in whole and len(cells) > 1:
            (cell,) = made.cells(bucket)
            assert cell.weight == 1
            assert cell.bin == max(cells, key=lambda own: own.weight).bin
        else:
            assert made.cells(bucket) == cells
    assert made.shares == pytest.approx(made.shares_of(plan.counts))


def test_counts_are_no_part_of_a_plans_value():
    """Not of its equality, hash, JSON or repr; copies and resumed planners keep them."""
    planner = Planner(4, buckets=64)
    plan = planner.update(np.arange(64.0))
    bare = replace(plan, counts=None, fair=None)
    assert (plan, hash(plan), plan.to_json(), repr(plan)) == (
        bare,
        hash(bare),
        bare.to_json(),
        repr(bare),
    )
    description = plan.describe()
    assert description == replace(plan, version=7).describe()
    assert description == pickle.loads(pickle.dumps(plan)).describe()
    assert description == Planner.resume(json.loads(json.dumps(planner.save()))).plan.describe()
    full = Planner(24).update(np.ones(8192))
    assert len(pickle.dumps(full)) - len(pickle.dumps(replace(full, counts=None))) < 70_000
