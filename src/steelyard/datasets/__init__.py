"""Streams of keys to try things on."""

from steelyard.datasets.zipf import zipf_probabilities, zipf_ranks

__all__ = ["zipf_probabilities", "zipf_ranks"]
