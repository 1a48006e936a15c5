"""Python work key by key, where a hot key is too much for one worker.

Rows enter, with what to load for a key and what to do with its rows; the results leave.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from steelyard.apps.batch_or_stream import group

Load = Callable[[Any], Any]
Score = Callable[[Any, pa.Table], pa.Table]


def score_by_key(
    frame: DataFrame,
    key: str,
    *,
    load: Load,
    score: Score,
    schema: StructType | str,
    workers: int,
    **grouping: Any,
) -> DataFrame:
    """Run `score(load(key), rows)` on the rows of every key; its tables together are the result.

    Like `frame.groupBy(key).applyInArrow`, but a key that is too much for one worker is on several:
    `score` gets some of the rows of one key, and must be right for any split of them. What `load`
    made of a key is kept for the task: it runs once for each worker that the key is on, and the
    keys of a task are in memory together.

    `grouping` are other arguments of `steelyard.group_by`, such as `tasks_per_worker`, or of
    `steelyard.group_stream` for a stream, such as `control`.

    >>> rows = spark.range(1000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS user", "id")
    >>> def score(letters, part):
    ...     return pa.table({"user": part["user"], "letters": [letters] * part.num_rows})
    >>> scored = score_by_key(
    ...     rows, "user", load=len, score=score, schema="user string, letters int", workers=4)
    >>> scored.where("user = 'hot'").distinct().collect(), scored.count()
    ([Row(user='hot', letters=3)], 1000)
    """
    for argument, function in (("load", load), ("score", score)):
        if not callable(function):
            raise TypeError(f"{argument} must be callable, got {function!r}")
    grouped = group(frame, key, workers=workers, **grouping)
    return grouped.map_arrow(key_by_key(key, load, score), schema)


def key_by_key(key: str, load: Load, score: Score) -> Callable[[pa.Table], pa.Table]:
    """A function for `map_arrow`: the rows of a table, key by key."""
    loaded: dict[Any, Any] = {}  # travels empty, and is filled in each task

    # A function within a function travels by value: executors need no steelyard.
    def scored(rows: pa.Table) -> pa.Table:
        keys = rows[key].combine_chunks().dictionary_encode(null_encoding="encode")
        numbers = keys.indices.to_numpy()
        ends = np.bincount(numbers).cumsum()
        by_key = rows.take(pa.array(np.argsort(numbers, kind="stable")))
        parts = []
        for place, value in enumerate(keys.dictionary.to_pylist()):
            if value not in loaded:
                loaded[value] = load(value)
            begin = ends[place - 1] if place else 0
            parts.append(score(loaded[value], by_key.slice(begin, ends[place] - begin)))
        return pa.concat_tables(parts)

    return scored
