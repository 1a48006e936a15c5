"""Run Python work for each key, where a hot key is too much for one worker.

Rows enter, with a function that loads data of a key and one that scores its rows; the scores leave.
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
    """Run `score(load(key), rows)` on the rows of every key; the result is the union of its tables.

    This is like `frame.groupBy(key).applyInArrow`, but a hot key is split over several workers. A
    call of `score` gets some of the rows of one key, and must be correct for any split of them.
    `load` runs once for each task that has rows of the key. A task keeps the loaded data of all its
    keys in memory.

    Args:
        frame: The rows: a frame or a stream.
        key: The column of the key.
        load: Maps a key to the data that `score` needs.
        score: Maps the loaded data and a table of rows of one key to a table of results.
        schema: The schema of the results.
        workers: The number of workers.
        grouping: Other arguments of `steelyard.group_by`, such as `tasks_per_worker`, or of
            `steelyard.group_stream` for a stream, such as `control`.

    Returns:
        The results of all calls of `score`.

    Raises:
        TypeError: `load` or `score` is not callable.
        ValueError: The column is missing or unsuitable, or a setting is out of range.

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
    """Return a function for `map_arrow` that scores the rows of a table, one key at a time."""
    loaded: dict[Any, Any] = {}  # shipped empty, and filled in each task

    # Spark ships a function inside a function by value, so executors need no steelyard.
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
