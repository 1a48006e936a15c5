"""The line of the figure covers the ranks that follow Zipf's law, and no others."""

import numpy as np
import pytest
from hypothesis import given

from steelyard.doctor.key_counts import KeyCounts
from steelyard.doctor.zipf_line import zipf_line
from tests.strategies import KEY_COUNTS


@given(KEY_COUNTS)
def test_the_line_is_near_every_point_of_its_range(plain):
    """No point is farther than a factor of 1.5, and the range is at least a factor of ten."""
    curve = KeyCounts.of(plain, workers=1).curve()
    line = zipf_line(curve)
    if line is None:
        return
    assert line.last >= 10 * line.first
    for rank, count in curve:
        if line.first <= rank <= line.last:
            assert 1 / 1.51 <= count / line.messages(rank) <= 1.51


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.6])
def test_the_exponent_is_that_of_the_counts(exponent):
    curve = [(rank, 1e9 * rank**-exponent) for rank in range(1, 200)]
    line = zipf_line(curve)
    assert (line.first, line.last) == (1, 199)
    assert line.exponent == pytest.approx(exponent)


def test_the_line_leaves_out_keys_that_do_not_fit():
    """One hot key before many equal ones is not on their line."""
    counts = KeyCounts.of({"hot": 10**6, **{str(i): 6 for i in range(1000)}}, workers=1)
    line = zipf_line(counts.curve())
    assert (line.first, line.last) == (2, 1001)
    assert line.exponent == pytest.approx(0, abs=1e-9)


def test_counts_without_a_straight_part_have_no_line():
    """Halves from rank to rank, and two keys, follow no power of the rank over a decade."""
    assert zipf_line([(rank, 2 ** (30 - rank)) for rank in range(1, 31)]) is None
    assert zipf_line([(1, 10), (2, 5)]) is None
    assert zipf_line([(1, 10)]) is None
    assert np.isfinite(zipf_line([(rank, 10) for rank in range(1, 20)]).exponent)
