"""Call functions of pandas DataFrames with all rows of one key at a time.

Blocks of rows enter; results leave. Several tasks have rows of a hot key, and each makes a partial
result of them. A second stage merges the partial results of each hot key. This runs inside Spark's
Python tasks and knows no Spark.
"""

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from steelyard.executor import packing, task_context
from steelyard.executor.pandas_function import OnPandas, together
from steelyard.executor.rows_by_key import tables_by_key

Batches = Iterable[pa.RecordBatch]

PARTS = "bin int, is_part boolean, block binary"
"""What the first stage sends to the second: final results, and partial results of hot keys."""

_TASK, _FRAME = "__steelyard_task", "__steelyard_frame"
"""Columns of a partial result, besides the key: the task that made it, and the pickled frame."""


class RowsOfKey(NamedTuple):
    """The rows that a task has of one key."""

    rows: pa.Table
    bucket: int


@dataclass(frozen=True)
class ApplyByKey:
    """A function for keys whose rows are all in one task, and one for parts of hot keys."""

    function: OnPandas
    hot: OnPandas
    key: tuple[str, ...]
    bucket: str
    """The column with the bucket of a row's key."""
    first_hot: int
    """The first bucket of a hot key; buckets before it belong to keys that are not hot."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from _gathered(
            (self.hot if self.is_hot(found) else self.function).of_key(found.rows, self.key)
            for found in self.by_key(batches)
        )

    def by_key(self, batches: Batches) -> Iterator[RowsOfKey]:
        """Yield the rows of each key in this task."""
        rows = (b for table in packing.unpacked(batches) for b in table.to_batches())
        for table in tables_by_key(rows, self.key):
            yield RowsOfKey(table.drop_columns([self.bucket]), table[self.bucket][0].as_py())

    def is_hot(self, found: RowsOfKey) -> bool:
        """Return whether these rows are a part of the rows of a hot key."""
        return found.bucket >= self.first_hot


@dataclass(frozen=True)
class ApplyBeforeMerge:
    """The same work, where the results for hot keys are partial results that will be merged."""

    work: ApplyByKey
    bins: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        here = task_context.partition()
        parts: list[pa.RecordBatch] = []
        for results in _gathered(self._results(batches, here, parts)):
            yield _sent(here, results, is_part=False)
        yield from parts

    def _results(
        self, batches: Batches, here: int, parts: list[pa.RecordBatch]
    ) -> Iterator[pa.Table]:
        """Yield the results for keys that are not hot; append partial results to `parts`."""
        work = self.work
        for found in work.by_key(batches):
            if work.is_hot(found):
                frame = work.hot.frame_for_key(found.rows, work.key)
                one = found.rows.select(list(work.key)).slice(0, 1).combine_chunks()
                part = one.append_column(_TASK, pa.array([here]))
                part = part.append_column(_FRAME, pa.array([pickle.dumps(frame)]))
                parts.append(_sent(found.bucket % self.bins, part.to_batches()[0], is_part=True))
            else:
                yield work.function.of_key(found.rows, work.key)


def _sent(to: int, rows: pa.RecordBatch, *, is_part: bool) -> pa.RecordBatch:
    """Return one row for the second stage."""
    block = pa.BufferOutputStream()
    with pa.ipc.new_stream(block, rows.schema) as stream:
        stream.write_batch(rows)
    column = pa.array([block.getvalue().to_pybytes()], pa.binary())
    return pa.record_batch(
        {"bin": pa.array([to], pa.int32()), "is_part": pa.array([is_part]), "block": column}
    )


@dataclass(frozen=True)
class MergeByKey:
    """The merge of the partial results of each hot key; final results pass unchanged."""

    merge: OnPandas
    key: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        parts: list[pa.RecordBatch] = []
        for batch in batches:
            for is_part, block in zip(batch["is_part"], batch["block"], strict=True):
                rows = pa.ipc.open_stream(block.as_buffer()).read_all().to_batches()
                if is_part.as_py():
                    parts += rows
                else:
                    yield from rows
        yield from _gathered(map(self._merged, tables_by_key(parts, self.key)))

    def _merged(self, parts: pa.Table) -> pa.Table:
        """Merge the partial results of one key, in the order of the tasks that made them."""
        merge = self.merge
        tasks = np.argsort(parts[_TASK].to_numpy())
        pickled = [parts[_FRAME][place].as_buffer() for place in tasks.tolist()]
        frames = list(map(pickle.loads, pickled))
        key = merge.key_of(merge.frame_of(parts.select(list(self.key)).slice(0, 1)), self.key)
        return merge.table_of(merge.of_frame(together(frames), key))


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Join tables, of which many have few rows, into longer batches."""
    return packing.gathered(batch for table in tables for batch in table.to_batches())
