"""Adaptive execution reads every row once, in tasks near the target size."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.doctor.adaptive import MB, AdaptiveExecution

SIZES = st.lists(st.integers(0, 600).map(lambda size: size * MB), min_size=1, max_size=40)


@given(SIZES, st.integers(1, 30), st.integers(1, 30))
def test_every_partition_is_read_once(sizes, slots, maps):
    """Empty partitions need no task; parts of a partition add up to it."""
    reads = AdaptiveExecution().reads(sizes, slots, maps)
    read = [0.0] * len(sizes)
    for task in reads:
        for place in range(task.first, task.end):
            read[place] += task.part
    assert all(times == pytest.approx(1) for times, size in zip(read, sizes, strict=True) if size)
    assert all(before.end <= after.end for before, after in pairwise(reads))


@given(SIZES, st.integers(1, 30))
def test_only_skewed_partitions_are_split(sizes, slots):
    """A partition of at most 256 MB, or five times the median, is in one task."""
    limit = max(256 * MB, 5 * sorted(sizes)[len(sizes) // 2])
    for read in AdaptiveExecution().reads(sizes, slots, maps=30):
        assert read.part == 1 or sizes[read.first] > limit or len(sizes) % 2 == 0


def test_tiny_partitions_join_a_neighbor():
    """A partition of less than 1 MB is merged, even if the task then exceeds the target."""
    reads = AdaptiveExecution().reads([64 * MB, MB // 2, 64 * MB], slots=1, maps=1)
    assert [(0, 1), (1, 3)] == [(read.first, read.end) for read in reads]
    reads = AdaptiveExecution().reads([60 * MB, 5 * MB, MB // 2, 64 * MB], slots=1, maps=1)
    assert [(0, 1), (1, 3), (3, 4)] == [(read.first, read.end) for read in reads]
    assert () == AdaptiveExecution().reads([0, 0], slots=1, maps=1)


def test_a_partition_is_split_only_between_map_outputs():
    """With two map tasks, a partition has at most two parts."""
    sizes = [MB] * 9 + [1000 * MB]
    assert [0.5, 0.5] == [r.part for r in AdaptiveExecution().reads(sizes, 4, maps=2) if r.part < 1]
    assert not [r for r in AdaptiveExecution().reads(sizes, 4, maps=1) if r.part < 1]
