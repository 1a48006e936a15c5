"""All rows of a key in a task become one table."""

import math
from itertools import pairwise
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from steelyard.executor import packing
from steelyard.executor.rows_by_key import tables_by_key

TEXTS = st.none() | st.sampled_from(["", "a", "b", "ä"])
NUMBERS = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan])
ROWS = st.lists(st.tuples(TEXTS, NUMBERS), max_size=60)


def same(value):
    """Return a value that is equal for equal keys: Spark has one zero and one NaN."""
    return "nan" if value is not None and math.isnan(value) else value


@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=4))
def test_every_key_has_one_table_with_all_its_rows(rows, cuts):
    """Rows keep their order, keys have the order in which they appear, and null is a key."""
    expected, by_text = {}, {}
    for place, (text, number) in enumerate(rows):
        expected.setdefault((text, same(number)), []).append(place)
        by_text.setdefault(text, []).append(place)
    with mock.patch.object(packing, "_ROWS", 7):  # so that most keys are in several batches
        both = tables_by_key(batches_of(rows, cuts), ["t", "f"])
        assert list(expected.values()) == [table["id"].to_pylist() for table in both]
        texts = tables_by_key(batches_of(rows, cuts), ["t"])
        assert list(by_text.values()) == [table["id"].to_pylist() for table in texts]


def batches_of(rows, cuts):
    """Return the rows in batches that end at these places."""
    texts, numbers = [text for text, _ in rows], [number for _, number in rows]
    kinds = pa.schema({"t": pa.string(), "f": pa.float64(), "id": pa.int64()})
    table = pa.table([texts, numbers, range(len(rows))], schema=kinds)
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [table.slice(start, end - start) for start, end in pairwise(ends)]
    return [batch for piece in pieces for batch in piece.to_batches()]
