"""A plan as a value: the bins of messages, the share that moves, and its JSON."""

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
    """The vectorized lookup and a loop over the cells agree on every message."""
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
def test_each_cell_gets_its_weight_of_the_messages(planner, counts):
    """The fractions of 20,000 messages of one bucket agree with the weights of its cells."""
    assume(counts.any())
    plan = planner.update(counts)
    bucket = int(counts.argmax())
    routed = plan.route(np.full(20_000, bucket), spread(np.arange(20_000)))
    got = np.bincount(routed, minlength=plan.bins) / 20_000
    for cell in plan.cells(bucket):
        assert got[cell.bin] == pytest.approx(cell.weight, abs=1e-3)


def test_the_moved_share_counts_messages_that_change_bins():
    """The share is exact for whole and for split buckets."""
    one = RoutingPlan.from_cells(3, [[(0, WHOLE)], [(0, WHOLE // 2), (1, WHOLE)], [(2, WHOLE)]])
    two = RoutingPlan.from_cells(3, [[(1, WHOLE)], [(0, WHOLE // 4), (2, WHOLE)], [(2, WHOLE)]])
    assert 0.5 * 1 + 0.25 * 0.75 == two.moved_from(one, [50, 25, 25])
    assert 0 == one.moved_from(one, [50, 25, 25]) == one.moved_from(two, [0, 0, 0])


def test_plans_over_different_numbers_of_buckets_cannot_be_compared():
    """The moved share is defined only for plans over the same buckets."""
    with pytest.raises(ValueError, match="must be a plan over 64 buckets, got one over 32"):
        Planner(2, buckets=64).plan.moved_from(Planner(2, buckets=32).plan, np.ones(64))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"bins": 1}'])
def test_other_json_is_refused(text):
    """JSON without the fields of a plan raises an error."""
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
def test_invalid_cells_are_refused(buckets):
    """Cells must have bins of the plan, and ends that increase up to 2^32."""
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
def test_bad_messages_are_refused(buckets, salts, error):
    """Buckets must be integers that exist, and salts must be 64-bit integers."""
    with pytest.raises(error):
        Planner(2, buckets=64).plan.route(buckets, salts)


@given(PLANNERS, bucket_counts(), st.sets(st.integers(0, 63)))
def test_split_buckets_can_be_made_whole(planner, counts, whole):
    """The given buckets go to the bin of their largest cell; the others do not change."""
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


def test_counts_are_not_part_of_the_value_of_a_plan():
    """Equality, hash, JSON and repr ignore counts; copies and resumed planners keep them."""
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


@settings(max_examples=50)
@given(PLANNERS, bucket_counts(), st.integers(1, 5), st.integers(0, 10))
def test_a_plan_for_owners_sends_to_the_owners_of_its_bins(planner, counts, workers, seed):
    """Every worker gets the same share of every bucket, and at most one cell of it."""
    plan = planner.update(counts)
    owners = np.random.default_rng(seed).integers(0, workers, plan.bins)
    owned = plan.for_owners(owners, workers)
    for bucket in range(plan.buckets):
        expected = np.zeros(workers)
        for cell in plan.cells(bucket):
            expected[owners[cell.bin]] += cell.weight
        found = np.zeros(workers)
        for cell in owned.cells(bucket):
            assert found[cell.bin] == 0
            found[cell.bin] = cell.weight
        assert np.allclose(expected, found, atol=1e-9)
    assert np.allclose(np.bincount(owners, plan.shares, workers), owned.shares)


@settings(max_examples=50)
@given(PLANNERS, bucket_counts(), st.integers(1, 70))
def test_every_whole_bucket_is_divided(planner, counts, parts):
    """Each part is in a bin of its own, the first one where the bucket was; splits stay."""
    plan = planner.update(counts)
    divided = plan.in_parts(parts)
    for bucket in range(plan.buckets):
        before, after = plan.cells(bucket), divided.cells(bucket)
        if len(before) > 1:
            assert before == after
            continue
        assert min(parts, plan.bins) == len({cell.bin for cell in after}) == len(after)
        assert before[0].bin == after[0].bin
        assert np.allclose(1 / len(after), [cell.weight for cell in after], atol=1e-9)
