"""Measurements of a worker, and the error of a worker that fails."""

import pytest

from steelyard.executor import packing
from steelyard.executor.worker import Map
from tests.executor.micro_batches import ROWS, WATCH, blocks


def test_a_function_that_fails_is_called_once():
    """The error names the worker, the micro-batch, the size of the table and its first keys."""
    calls = []

    def fragile(rows):
        calls.append(rows.num_rows)
        raise KeyError("cannot read this")

    timed = WATCH.start(Map(fragile, ROWS).start(), 0, 7)
    (table,) = packing.unpacked(blocks(*"abcdefga"))
    buckets = len(set(table["bucket"].to_pylist()))
    sentence = (
        f"worker 0 failed in micro-batch 7 on 8 rows of {buckets} buckets and 7 keys "
        r"\(a; b; c; d; e; ...\): KeyError: 'cannot read this'"
    )
    with pytest.raises(RuntimeError, match=sentence):
        timed.work(table)
    assert [8] == calls
