"""Salts by hand."""

import numpy as np

from steelyard.salting import salting


def test_salting_gives_each_key_ten_salts():
    """Every message of a bucket goes to one of ten workers, each as often as salts fall on it."""
    plan = salting(24)
    shares = np.bincount(plan.bins_of, plan.weights, 24) / plan.buckets
    assert shares.max() / shares.min() < 1.1
    assert 8 < plan.copies.mean() <= 10
    np.testing.assert_allclose(plan.weights * 10, np.rint(plan.weights * 10), atol=1e-6)
