"""Reports of sources and workers, and quantiles of their latencies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.control.reports import SourceReport, WorkerReport, latency_bins, latency_quantile


@given(st.lists(st.floats(0, 1e7), min_size=1, max_size=50), st.floats(0.01, 1))
@settings(max_examples=50)
def test_quantiles_of_latencies_are_within_a_bin(latencies, quantile):
    """The relative error is at most 13 %, from a tenth of a millisecond to a day."""
    found = latency_quantile(latency_bins(np.array(latencies)), quantile)
    exact = sorted(latencies)[max(0, int(np.ceil(quantile * len(latencies))) - 1)]
    assert found == pytest.approx(min(max(exact, 1e-4), 1.06e5), rel=0.13)


def test_reports_are_read_back_from_json():
    source = SourceReport(3, 1, 2, np.arange(9, dtype=np.float32), (("a", 4),), 5)
    back = SourceReport.from_json(source.to_json())
    assert (3, 1, 2, 5) == (back.batch, back.source, back.part, back.version)
    assert (("a", 4),) == back.hot
    assert source.counts.tolist() == back.counts.tolist()
    worker = WorkerReport(3, 1, 10, 0.5, 7, ((1, 2), (3, 4)), 99)
    assert worker == WorkerReport.from_json(worker.to_json())
    assert latency_quantile(np.zeros(181, np.int64), 0.5) is None
