"""A task calls functions with all rows of one key at a time."""

from itertools import pairwise

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from steelyard.executor import packing
from steelyard.executor.key_worker import ApplyByKey
from steelyard.executor.pandas_function import OnPandas

SCHEMA = pa.schema({"who": pa.string(), "key": pa.string(), "ids": pa.string()})
FIRST_HOT = 8


def by(who):
    """Return a function that notes its name, the key, and the ids in their order."""

    def made(key, rows):
        ids = " ".join(map(str, rows["id"]))
        return pd.DataFrame({"who": [who], "key": [str(key)], "ids": [ids]})

    return OnPandas(made, SCHEMA, "UTC", "apply_in_pandas", takes_key=True, exact_integers=False)


WORK = ApplyByKey(by("light"), by("hot"), ("a", "b"), "bucket", FIRST_HOT)


@given(
    keys=st.lists(
        st.tuples(st.sampled_from("xyz"), st.none() | st.integers(0, 3)), min_size=1, max_size=50
    ),
    cuts=st.lists(st.integers(1, 49), max_size=3, unique=True),
)
def test_each_key_has_one_call_however_its_rows_arrive(keys, cuts):
    """Only keys in the buckets of hot keys go to the function for hot keys."""
    rows = pa.record_batch(
        {
            "a": pa.array([a for a, _ in keys], pa.string()),
            "b": pa.array([b for _, b in keys], pa.int32()),
            "id": pa.array(range(len(keys)), pa.int64()),
            "bucket": pa.array([0 if a == "z" else FIRST_HOT for a, _ in keys], pa.int32()),
        }
    )
    ends = [0, *sorted(cut for cut in cuts if cut < len(keys)), len(keys)]
    pieces = [rows.slice(start, end - start) for start, end in pairwise(ends)]
    blocks = [packing.packed(piece, piece["bucket"].to_numpy()) for piece in pieces]
    expected = {}
    for place, key in enumerate(keys):
        expected.setdefault(key, []).append(place)
    found = {}
    for row in (row for batch in WORK(blocks) for row in batch.to_pylist()):
        ids = tuple(map(int, row["ids"].split()))
        found[ids] = row["who"]
    assert found == {
        tuple(ids): "light" if key[0] == "z" else "hot" for key, ids in expected.items()
    }


def test_the_key_has_the_types_of_spark():
    """An integer that is null is a floating-point number."""
    rows = pa.record_batch({"a": ["x", "x"], "b": [1, None], "id": [0, 1], "bucket": [0, 0]})
    (made,) = WORK([packing.packed(rows, rows["bucket"].to_numpy())])
    assert made["key"].to_pylist() == ["('x', np.int64(1))", "('x', np.float64(nan))"]
