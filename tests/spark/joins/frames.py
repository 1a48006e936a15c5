"""Random frames for joins, and the comparison with Spark's own join."""

import warnings

import steelyard as sy

POOLS = {
    "bigint": [*range(30), None],
    "string": ["", *range(30), None],
    "double": ["0.0", "-0.0", "NaN", None, *(i / 2 for i in range(1, 27))],
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
    pool = POOLS[kind]
    places = rng.integers(0, len(pool), rows)
    places[: int(hot * rows)] = rng.choice([0, 0, 0, 1, len(pool) - 1], int(hot * rows))
    keys = ["NULL" if pool[place] is None else f"'{pool[place]}'" for place in places]
    # Values in SQL keep their order in a retry, so their columns may be salts on every version.
    values = [f"({key}, {n})" for key, n in zip(keys, rng.permutation(rows), strict=True)]
    listed = ", ".join(values or ["(NULL, NULL)"])
    frame = spark.sql(f"VALUES {listed}").selectExpr(
        f"cast(col1 AS {kind}) AS k", f"cast(col2 AS bigint) AS {name}"
    )
    return frame.limit(rows) if rows == 0 else frame


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
