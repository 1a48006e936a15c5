"""Aggregators, test rows, and functions that compute the expected results."""

import statistics
from collections import Counter

import pyarrow as pa
from hypothesis import strategies as st

from steelyard.aggregators import (
    Aggregation,
    ApproxDistinct,
    CollectSet,
    Count,
    Max,
    Mean,
    Min,
    Quantiles,
    Sum,
    TopK,
    Variance,
)

SCHEMA = pa.schema(
    [("key", pa.string()), ("part", pa.int32()), ("number", pa.int64()), ("word", pa.string())]
)

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None]),
        st.one_of(st.none(), st.integers(0, 1)),
        st.one_of(st.none(), st.integers(-1000, 1000)),
        st.one_of(st.none(), st.sampled_from(["x", "y", "zz", ""])),
    ),
    max_size=60,
)


def batch(rows):
    columns = list(zip(*rows, strict=True)) or [[], [], [], []]
    return pa.record_batch(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def present(values):
    return [value for value in values if value is not None]


def top(values, k):
    ranked = sorted(Counter(present(values)).items(), key=lambda item: (-item[1], item[0]))
    return [{"value": v, "count": c, "error": 0} for v, c in ranked[:k]]


def variance(values, least, function):
    return function(values) if len(values) >= least else None


EXPECTED = {
    Count(): lambda numbers, words: len(numbers),
    Count("word"): lambda numbers, words: len(present(words)),
    Sum("number"): lambda numbers, words: sum(present(numbers)) if present(numbers) else None,
    Min("number"): lambda numbers, words: min(present(numbers), default=None),
    Max("word"): lambda numbers, words: max(present(words), default=None),
    Mean("number"): lambda numbers, words: (
        statistics.fmean(present(numbers)) if present(numbers) else None
    ),
    Variance("number"): lambda numbers, words: variance(present(numbers), 2, statistics.variance),
    Variance("number", population=True): lambda numbers, words: variance(
        present(numbers), 1, statistics.pvariance
    ),
    CollectSet("word"): lambda numbers, words: sorted(set(present(words))),
    TopK("word", k=2): lambda numbers, words: top(words, 2),
    ApproxDistinct("word"): lambda numbers, words: len(set(present(words))),
    ApproxDistinct("number"): lambda numbers, words: len(set(present(numbers))),
    Quantiles("number", ranks=(0, 0.5, 1)): lambda numbers, words: (
        [float(sorted(present(numbers))[i]) for i in (0, (len(present(numbers)) - 1) // 2, -1)]
        if present(numbers)
        else None
    ),
}
"""For each aggregator a function of a key's numbers and words that gives the expected result."""


def aggregation(aggregators=tuple(EXPECTED), by=("key", "part")):
    return Aggregation(aggregators, by, SCHEMA)
