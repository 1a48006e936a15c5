"""Measurements, always as ratios to peers in the same run: machines are noisy."""
