"""Benchmarks of consistent grouping on streams."""
