"""Consistent grouping as a running system, measured."""
