"""Collect all rows of each key that one task has.

Record batches enter; one table for each key leaves.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from steelyard.aggregators.groups import Groups
from steelyard.aggregators.layout import plain_column
from steelyard.executor import packing


def tables_by_key(batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of each key, in the order in which keys appear; null is a key.

    Values are equal as in Spark's `groupBy`: both zeros are one key, and all NaNs are one key. The
    rows of a key keep their order. A table consists of slices of sorted batches, so the task holds
    its rows once.
    """
    by_group: list[pa.RecordBatch] = []
    keys, sizes = [], []
    for rows in packing.gathered(batches):
        groups = _groups(rows, key)
        by_group.append(rows.take(pa.array(np.argsort(groups.ids, kind="stable"))))
        keys.append(rows.select(list(key)).take(pa.array(groups.first_rows())))
        sizes.append(groups.sizes())
    if not by_group:
        return
    # A run is all rows of one key in one batch.
    batch_of_run = np.repeat(np.arange(len(sizes)), [size.size for size in sizes])
    starts = np.concatenate([size.cumsum() - size for size in sizes])
    lengths = np.concatenate(sizes)
    (keys_of_runs,) = pa.Table.from_batches(keys).combine_chunks().to_batches()
    same = _groups(keys_of_runs, key)
    for runs in np.split(np.argsort(same.ids, kind="stable"), same.sizes().cumsum()[:-1]):
        places = zip(batch_of_run[runs], starts[runs], lengths[runs], strict=True)
        yield pa.Table.from_batches(
            [by_group[batch].slice(start, length) for batch, start, length in places]
        )


def _groups(rows: pa.RecordBatch, key: Sequence[str]) -> Groups:
    return Groups.of([plain_column(rows.column(name)) for name in key])
