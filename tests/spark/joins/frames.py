"""Random frames for joins, and the comparison with Spark's own join."""

import warnings

import pyarrow as pa

import steelyard as sy
from steelyard.spark.versions.arrow import from_arrow

NAN = float("nan")
POOLS = {
    "bigint": (pa.int64(), [*range(30), None]),
    "string": (pa.string(), ["", *map(str, range(30)), None]),
    "double": (pa.float64(), [0.0, -0.0, NAN, None, *(i / 2 for i in range(1, 27))]),
}
"""The values of keys by their type; the first ones are hot."""


def random_frame(spark, rng, rows, kind="bigint", hot=0.0, name="n"):
    """Return rows with a key `k` and a number; a fraction `hot` of them has one of three keys.

    Args:
        spark: The session.
        rng: A random generator.
        rows: The number of rows.
        kind: The type of the key.
        hot: The fraction of rows with the first two keys or with the last.
        name: The name of the other column.
    """
    of_type, pool = POOLS[kind]
    places = rng.integers(0, len(pool), rows)
    places[: int(hot * rows)] = rng.choice([0, 0, 0, 1, len(pool) - 1], int(hot * rows))
    keys = pa.array([pool[place] for place in places], of_type)
    return from_arrow(spark, pa.table({"k": keys, name: pa.array(rng.permutation(rows))}))


def rows_of(frame):
    """Return all rows as sorted text, so that nulls and NaN can be compared."""
    return sorted(map(repr, frame.collect()))


def assert_as_spark(big, small, on="k", how="inner", *, condition=None, **settings):
    """Compare a join with Spark's: names and types of the columns, and all rows.

    Args:
        big: The frame with hot keys.
        small: The other frame.
        on: The key.
        how: The type of the join.
        condition: The condition of Spark's join, if it has one.
        settings: More arguments of `sy.join`.

    Returns:
        The joined frame.
    """
    arguments = {"workers": 5, "routing": sy.Balance(buckets=16), **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # small frames may have few distinct rows
        ours = sy.join(big, small, on, how, **arguments)
    sparks = big.join(small, on if condition is None else condition, how)
    kinds = [[(f.name, f.dataType) for f in frame.schema.fields] for frame in (sparks, ours)]
    assert kinds[0] == kinds[1]
    assert rows_of(sparks) == rows_of(ours)
    return ours
