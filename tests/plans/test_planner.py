"""Plans from counts: balanced, with few key copies, and close to the previous plan."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.datasets import zipf_ranks
from steelyard.hashing import buckets_of, hash_keys, mix64, spread
from steelyard.metrics import memory_cost
from steelyard.plans import Planner, RoutingPlan
from tests.plans.strategies import PLANNERS, bucket_counts


@given(PLANNERS, st.lists(bucket_counts(), min_size=1, max_size=4))
def test_no_bin_gets_more_than_its_room(planner, slots):
    """A bin gets at most (1 + epsilon) times its share for all counts, plans and capacities."""
    room = (1 + planner.epsilon) * planner.capacities / planner.capacities.sum()
    for counts in slots:
        plan = planner.update(counts)
        assert (plan.shares <= room * (1 + 1e-6) + 1e-6).all()


@given(PLANNERS, st.lists(bucket_counts(), min_size=1, max_size=3))
def test_the_weights_of_a_bucket_add_up_to_one(planner, slots):
    """The cells of a bucket have different bins and positive weights."""
    for counts in slots:
        plan = planner.update(counts)
        for bucket in range(plan.buckets):
            cells = plan.cells(bucket)
            assert sum(cell.weight for cell in cells) == pytest.approx(1)
            assert len(cells) == len({cell.bin for cell in cells}) == plan.copies[bucket]
            assert all(cell.weight > 0 for cell in cells)


@given(PLANNERS, bucket_counts())
def test_a_plan_is_a_pure_function(planner, counts):
    """The same counts give the same plan, from another planner and after a JSON round trip."""
    plan = planner.update(counts)
    again = Planner(planner.bins, planner.epsilon, 64, planner.capacities)
    assert plan == again.update(counts)
    assert hash(plan) == hash(again.plan)
    restored = RoutingPlan.from_json(plan.to_json())
    assert plan == restored
    assert plan.version == restored.version
    assert plan.shares.tolist() == restored.shares.tolist()


@given(PLANNERS, bucket_counts())
def test_no_message_moves_while_the_counts_stay(planner, counts):
    """A second update with the same counts keeps every message on its bin."""
    plan = planner.update(counts)
    again = planner.update(counts)
    assert again.moved_from(plan, counts) <= 1e-9
    assert again.copies.tolist() == plan.copies.tolist()
    assert again.version == plan.version + (plan != again)


@given(PLANNERS, st.lists(bucket_counts(), min_size=2, max_size=4))
def test_no_message_moves_while_the_counts_stay_after_a_change(planner, slots):
    """A plan that was made from an earlier plan is stable too."""
    planner = Planner(planner.bins, planner.epsilon, 64, planner.capacities, decay=0)
    for counts in slots:
        plan = planner.update(counts)
    again = planner.update(counts)
    assert again.moved_from(plan, counts) <= 1e-9
    assert again.copies.tolist() == plan.copies.tolist()


@pytest.mark.parametrize(
    ("bins", "epsilon", "counts"),
    [
        (4, 0.001, [10, 1, 1, 6, 6, 3, 10, 6]),
        (4, 0.01, [0, 1, 0, 5, 3, 0, 7, 5, 7, 3, 6]),
        (11, 0.01, [4, 10, 1, 1, 11, 7, 1, 8, 3, 3, 2]),
    ],
)
def test_split_buckets_that_fill_a_bin_stay(bins, epsilon, counts):
    """Rounded weights do not push a cell out of a bin that is exactly full."""
    planner = Planner(bins, epsilon, len(counts), decay=0)
    plan = planner.update(counts)
    assert len(plan.splits) > 1
    assert plan == planner.update(counts)


@given(PLANNERS, bucket_counts(), bucket_counts())
def test_a_planner_resumes_exactly(planner, counts, more):
    """A planner that was saved as JSON and resumed makes the same plans as the original."""
    planner.update(counts)
    resumed = Planner.resume(json.loads(json.dumps(planner.save())))
    expected, actual = planner.update(more), resumed.update(more)
    assert expected == actual
    assert expected.version == actual.version
    fresh = Planner.resume(Planner(3, buckets=64).save())
    assert fresh.plan == Planner(3, buckets=64).plan


@pytest.fixture(scope="module", params=[1.0, 2.0], ids=["Zipf 1", "Zipf 2"])
def stream(request):
    """Return the skew, the ranks and the buckets of 2 M messages with 100,000 keys."""
    ranks = zipf_ranks(2_000_000, request.param, seed=3)
    return request.param, ranks, buckets_of(hash_keys(pa.array(ranks, pa.int64())), 8192)


def running_salts(buckets):
    """Return salts that spread the messages of every bucket evenly."""
    order = np.argsort(buckets, kind="stable")
    starts = np.searchsorted(buckets[order], np.arange(8192))
    running = np.empty(buckets.size, np.int64)
    running[order] = np.arange(buckets.size) - starts[buckets[order]]
    return spread(running)


@pytest.mark.parametrize("bins", [24, 100])
def test_a_plan_from_true_counts_is_balanced_with_few_copies(stream, bins):
    """The largest bin has at most 1.01 of its share, and few keys are copied."""
    skew, ranks, buckets = stream
    plan = Planner(bins).update(np.bincount(buckets, minlength=8192))
    assert plan.shares.max() * bins <= 1.01 + 1e-6
    routed = plan.route(buckets, running_salts(buckets))
    assert np.bincount(routed).max() / ranks.size * bins <= 1.0105
    assert memory_cost(ranks, routed, bins) <= (1.05 if skew == 1.0 else 1.2)


def test_bins_get_the_shares_that_the_plan_expects(stream):
    """The share of each bin differs by at most 1/10,000 of the stream."""
    _, ranks, buckets = stream
    plan = Planner(100).update(np.bincount(buckets, minlength=8192))
    got = np.bincount(plan.route(buckets, running_salts(buckets)), minlength=100) / ranks.size
    assert np.abs(got - plan.shares).max() <= 1e-4


def test_shares_are_proportional_to_capacities():
    """A bin with three times the capacity gets three times the stream."""
    counts = np.bincount(buckets_of(mix64(np.arange(100_000, dtype=np.uint64)), 8192))
    plan = Planner(4, capacities=[3, 1, 1, 1]).update(counts)
    assert plan.shares.round(2).tolist() == pytest.approx([0.5, 0.1667, 0.1667, 0.1667], abs=0.01)


def test_a_new_hot_key_moves_little_else(stream):
    """When a bucket gains a tenth of the stream, less than a quarter of the stream moves."""
    _, _, buckets = stream
    counts = np.bincount(buckets, minlength=8192).astype(float)
    planner = Planner(24, decay=0)
    before = planner.update(counts)
    light = int(np.argsort(counts)[4000])
    counts[light] += 0.1 * counts.sum()
    after = planner.update(counts)
    assert len(after.splits[light]) >= 2
    assert after.moved_from(before, counts) < 0.25


def test_heavy_buckets_keep_their_bins_when_they_change_places():
    """The hotter bucket chooses first, and it chooses its previous bins."""
    counts = np.full(64, 5.0)
    counts[3], counts[9] = 300, 290
    planner = Planner(12, buckets=64, decay=0)
    before = planner.update(counts)
    counts[3], counts[9] = 290, 300
    after = planner.update(counts)
    assert after.moved_from(before, counts) < 0.05


def test_bulky_buckets_are_placed_before_light_ones(stream):
    """Few bulky buckets are split, because light buckets have not yet filled the bins."""
    skew, _, buckets = stream
    plan = Planner(100).update(np.bincount(buckets, minlength=8192))
    assert plan.bins_of.size - 8192 <= (30 if skew == 1.0 else 90)


def test_first_choices_follow_capacities():
    """Without counts, a bin with nine times the capacity gets nine times the buckets."""
    plan = Planner(2, capacities=[9, 1]).plan
    assert np.bincount(plan.bins_of)[0] / 8192 == pytest.approx(0.9, abs=0.02)


def test_old_counts_decay():
    """With decay 0 only the last counts matter; with decay 0.5 earlier counts matter too."""
    first, second = np.zeros(64), np.zeros(64)
    first[0], second[1] = 100, 100
    forgetting, decaying = Planner(4, buckets=64, decay=0), Planner(4, buckets=64, decay=0.5)
    for planner in (forgetting, decaying):
        planner.update(first)
        planner.update(second)
    assert [1] == list(forgetting.plan.splits)
    assert [0, 1] == sorted(decaying.plan.splits)


def test_without_counts_no_bucket_is_split():
    """A plan without counts is key grouping."""
    planner = Planner(24)
    assert (planner.plan.copies == 1).all()
    assert planner.plan == planner.update(np.zeros(8192))
    assert 24 == np.unique(planner.plan.bins_of).size


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"bins": 0}, "bins must be a whole number"),
        ({"bins": 4, "epsilon": 0}, "epsilon must be a number above 0 and at most 10, got 0"),
        ({"bins": 4, "buckets": 3}, "buckets must be at least the number of bins, 4,.* got 3"),
        ({"bins": 4, "decay": 2}, "decay must be a number at least 0 and at most 1, got 2"),
        ({"bins": 2, "capacities": [1]}, r"one number for each of 2 bins, got shape \(1,\)"),
        ({"bins": 2, "capacities": [1, 0]}, "capacities must be positive numbers, got 0.0 at 1"),
    ],
)
def test_a_bad_argument_is_refused(arguments, sentence):
    """The error message names the argument, the given value and the allowed values."""
    with pytest.raises(ValueError, match=sentence):
        Planner(**arguments)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (np.ones(3), r"one number for each of 64 buckets, got shape \(3,\)"),
        (np.full(64, -1), "numbers from 0 to 1e300, got -1.0 at 0"),
        (np.full(64, np.nan), "numbers from 0 to 1e300, got nan at 0"),
        (np.full(64, 1e308), r"numbers from 0 to 1e300, got 1e\+308 at 0"),
    ],
)
def test_bad_counts_are_refused(counts, sentence):
    """Counts are one non-negative number per bucket."""
    with pytest.raises(ValueError, match=sentence):
        Planner(2, buckets=64).update(counts)


def test_a_plan_of_another_size_is_not_resumed():
    """A planner resumes only a plan with its own numbers of bins and buckets."""
    saved = Planner(2, buckets=64).save()
    other = Planner(3, buckets=64)
    other.update(np.ones(64))
    with pytest.raises(ValueError, match="for 2 bins and 64 buckets cannot resume a plan for 3"):
        Planner.resume({**saved, "plan": other.plan.to_json()})
    shares = json.dumps({"bins": 2, "buckets": [0], "shares": [1], "version": 1})
    with pytest.raises(ValueError, match="this is not the JSON of a routing plan"):
        RoutingPlan.from_json(shares)
