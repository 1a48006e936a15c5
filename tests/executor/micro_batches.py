"""Micro-batches for tests of workers without Spark, and the counts that workers send."""

from collections import Counter
from math import inf

import numpy as np
import pyarrow as pa

import steelyard as sy
from steelyard.aggregators import Aggregation
from steelyard.control.definition import Definition
from steelyard.executor import packing
from steelyard.executor.periodic_worker import Periodic
from steelyard.executor.stopwatch import Stopwatch
from steelyard.executor.worker_output import REPORT

ROWS = pa.schema([("page", pa.string()), ("id", pa.int64())])
WATCH = Stopwatch("bucket", None, ("page", "id"), ("page",), workers=1)
SUMS = Definition(keys=("page string",), aggregators=("Sum(column='id')",))


def blocks(*pages, latest=None):
    """Return a micro-batch with a row for each page; without pages it has one row and no block."""
    if not pages:
        times = pa.array([latest], pa.int64())
        return [pa.record_batch({"block": pa.nulls(1, pa.binary()), "latest": times})]
    rows = pa.record_batch(
        {
            "page": pa.array(pages, pa.string()),
            "id": pa.array(range(len(pages)), pa.int64()),
            "bucket": pa.array([hash(page) % 8 for page in pages], pa.int32()),
        }
    )
    sent = packing.packed(rows, np.zeros(len(pages), np.int32))
    return [sent.append_column("latest", pa.array([latest] * sent.num_rows, pa.int64()))]


def periodic(period, aggregator=None, definition=SUMS, most_held=inf):
    """Return a worker that keeps partial states for a period."""
    aggregation = Aggregation([aggregator or sy.Count()], ["page"], ROWS)
    return Periodic(aggregation, period, 1, None, WATCH, definition, most_held)


def counts(made):
    """Return the sum of the sent states for each page."""
    total = Counter()
    for part in made:
        states = part.filter(part.column(REPORT).is_null())
        for page, count in zip(states["c0"].to_pylist(), states["c1"].to_pylist(), strict=True):
            total[page] += count
    return total
