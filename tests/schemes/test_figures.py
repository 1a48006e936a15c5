"""The imbalance and the memory of the schemes on long streams."""

import numpy as np
import pyarrow as pa
import pytest

from steelyard import metrics, schemes
from steelyard.datasets import zipf_probabilities, zipf_ranks
from steelyard.hashing import hash_keys


@pytest.fixture(scope="module")
def stream():
    """Return the ranks and hashes of 5 M messages, Zipf 1.0 over 100,000 keys."""
    ranks = zipf_ranks(5_000_000, skew=1.0, seed=11)
    return ranks, hash_keys(pa.array(ranks, pa.int64()))


def route(stream, name, bins, **settings):
    ranks, hashes = stream
    router = schemes.named(name, **settings).router(bins)
    routed = router.route_many(hashes)
    memory = metrics.memory_cost(ranks, routed, bins)
    return metrics.normalized_imbalance(router.loads), memory


def test_graded_choices_save_memory(stream):
    """They need at most 0.6 of the memory of Algorithm 1, within the same bound on loads."""
    imbalance, memory = route(stream, "porc", 100)
    graded_imbalance, graded_memory = route(stream, "porc-graded", 100)
    assert graded_memory <= 0.6 * memory
    assert imbalance <= 0.0101
    assert graded_imbalance <= 0.0101


@pytest.mark.parametrize(
    ("name", "split"), [pytest.param("kg", 1, id="kg"), pytest.param("pkg", 2, id="pkg")]
)
def test_lower_bounds_hold(stream, name, split):
    """A scheme that splits a key over `split` bins has an imbalance of n p / split - 1 or more."""
    imbalance, memory = route(stream, name, 100)
    share = zipf_probabilities(1.0, 100_000)[0]
    assert imbalance >= 100 * share * 0.99 / split - 1
    assert memory <= split


def test_a_half_life_keeps_the_recent_imbalance_low_when_hot_keys_change():
    """Without a half life the recent imbalance exceeds 1; with it, it stays below 0.5."""
    bins, phase = 50, 500_000
    ranks = np.concatenate(
        [zipf_ranks(phase, 1.2, 10_000, seed).astype(np.int64) + seed * 10_000 for seed in range(4)]
    )
    hashes = hash_keys(pa.array(ranks))

    def recent_imbalance(**settings):
        router = schemes.named("porc-graded", **settings).router(bins)
        routed = router.route_many(hashes)
        windows = routed.reshape(-1, 50_000)[10:]
        return max(metrics.normalized_imbalance(metrics.load(w, bins)) for w in windows)

    assert recent_imbalance() > 1
    assert recent_imbalance(half_life=10 * bins * 100) < 0.5


def test_slack_lowers_the_memory_while_loads_are_small(stream):
    """With slack, fewer light keys leave their first choice."""
    _, without = route(stream, "porc-graded", 1000)
    _, with_slack = route(stream, "porc-graded", 1000, slack=20)
    assert with_slack < without


@pytest.mark.parametrize("name", ["dchoices", "wchoices"])
def test_head_choices_balance_where_two_choices_do_not(stream, name):
    """More choices for head keys balance a stream that partial key grouping cannot balance."""
    imbalance, memory = route(stream, name, 100)
    assert imbalance < 0.02
    assert memory < 2.5
