"""Benchmarks. Results are ratios to other implementations in the same run: machines are noisy."""
