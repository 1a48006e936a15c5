"""Texts of skewed words; each class prefers other words."""

import numpy as np

from steelyard.datasets import zipf_ranks

CLASSES = ("news", "sport", "weather")


def texts(number, seed=0, words=300):
    """Return (id, class, words); each class has its own order of all but the ten hottest words."""
    rng = np.random.default_rng(seed)
    mixed = np.random.default_rng(42)
    orders = [np.append(np.arange(10), 10 + mixed.permutation(words - 10)) for _ in CLASSES]
    made = []
    for place in range(number):
        label = int(rng.choice(len(CLASSES), p=[0.6, 0.3, 0.1]))
        ranks = zipf_ranks(int(rng.integers(5, 25)), 1.1, words, seed=seed * 10**6 + place)
        chosen = [f"word{orders[label][rank]}" for rank in ranks]
        made.append((place, CLASSES[label], chosen))
    return made


SCHEMA = "id long, class string, words array<string>"
