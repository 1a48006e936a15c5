import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard import metrics

MESSAGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1)


@given(MESSAGES, st.sampled_from([0, -5, 2**62]))
def test_memory_counts_different_keys(messages, lowest):
    """Compare with Python sets, for small keys, negative keys and hashes."""
    keys, workers = (np.array(column) for column in zip(*messages, strict=True))
    keys = keys + lowest
    held = [len({k for k, w in messages if w == worker}) for worker in range(5)]
    assert held == metrics.memory(keys, workers, 5).tolist()
    different = len({k for k, _ in messages})
    assert sum(held) / different == metrics.memory_cost(keys, workers, 5)
    copies = [len({w for k, w in messages if k == key}) for key in sorted({k for k, _ in messages})]
    assert copies == metrics.key_copies(keys, workers, 5).tolist()


@given(st.lists(st.integers(0, 10**6), min_size=1), st.floats(0.1, 100))
def test_imbalance_is_the_largest_load_minus_the_mean_load(loads, capacity):
    """Loads are divided by capacities; the normalized imbalance is divided by the mean."""
    over = [load / capacity for load in loads]
    surplus = max(over) - sum(over) / len(over)
    assert metrics.imbalance(loads, capacity) == pytest.approx(surplus, abs=1e-6)
    mean = sum(over) / len(over)
    expected = surplus / mean if mean else 0
    assert metrics.normalized_imbalance(loads, capacity) == pytest.approx(expected, abs=1e-6)


def test_loads_are_divided_by_capacities():
    """Twice the load on twice the capacity is balanced."""
    assert metrics.imbalance([10, 20], capacities=[1, 2]) == 0
    assert metrics.normalized_imbalance([10, 10], capacities=[1, 2]) == pytest.approx(1 / 3)


def test_metrics_without_messages_are_zero():
    """Without workers or messages there is no imbalance and no memory."""
    nothing = np.empty(0, np.int64)
    assert metrics.imbalance([]) == metrics.normalized_imbalance([]) == 0
    assert metrics.memory_cost(nothing, nothing, 3) == 0
    assert metrics.memory(nothing, nothing, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.imbalance([1], 0), "capacities must be positive numbers"),
        (lambda: metrics.execution_latency([1], [0]), "cannot finish before it arrives"),
        (lambda: metrics.throughput([1], 2, 2), "end must be after begin, 2, got 2"),
    ],
)
def test_impossible_measurements_are_rejected(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
