"""What workers do with the rows that they get in blocks.

Blocks enter; record batches leave. This runs inside Spark's Python tasks and knows no Spark.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from steelyard.aggregators import Aggregation
from steelyard.spark import packing

Batches = Iterable[pa.RecordBatch]
Function = Callable[[pa.Table], pa.Table | pa.RecordBatch]

_MOST_KEYS, _MOST_BYTES = 2**20, 2**28
"""A worker sends its partial states on when it holds so much: its memory stays bounded."""


@dataclass(frozen=True)
class Map:
    """A worker: a function of the user's, on tables of rows."""

    function: Function
    schema: pa.Schema
    all_at_once: bool

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in packing.unpacked(batches, all_at_once=self.all_at_once):
            yield from self._as_promised(self.function(table)).to_batches()

    def _as_promised(self, made: object) -> pa.Table:
        """What the function returned, with the columns and types that were announced."""
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        if not isinstance(made, pa.Table):
            raise TypeError(
                "map_arrow: the function must return a pyarrow Table or RecordBatch, "
                f"got {type(made).__name__}"
            )
        if sorted(made.column_names) != sorted(self.schema.names):
            raise ValueError(
                f"map_arrow: the schema names the columns {', '.join(self.schema.names)}, but the "
                f"function returned {', '.join(made.column_names) or 'none'}"
            )
        return made.select(self.schema.names).cast(self.schema)


@dataclass(frozen=True)
class Add:
    """A worker: rows become partial states, in blocks by the bucket of their key."""

    aggregation: Aggregation
    bucket: str
    bins: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        states = _States(self.aggregation)
        for table in packing.unpacked(batches):
            states.append(self.aggregation.add(self.aggregation.create(), table))
            if states.rows > _MOST_KEYS or states.bytes > _MOST_BYTES:
                yield from self._blocks(states.take())
        if states.rows:
            yield from self._blocks(states.take())

    def _blocks(self, states: pa.Table) -> Iterator[pa.RecordBatch]:
        for rows in states.to_batches():
            yield packing.packed(rows, rows.column(self.bucket).to_numpy() % self.bins)


@dataclass(frozen=True)
class Merge:
    """Where the partial states of a key meet: merged, they are its result."""

    aggregation: Aggregation
    bucket: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        states = _States(self.aggregation)
        for table in packing.unpacked(batches):
            states.append(table)
        if states.rows:
            result = self.aggregation.result(states.take())
            yield from result.drop_columns([self.bucket]).to_batches()


class _States:
    """Partial tables, merged when as many rows are new as old: each row is in few merges."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._merged = aggregation.create()
        self._new: list[pa.Table] = []
        self._new_rows = self._new_bytes = 0

    def append(self, partial: pa.Table) -> None:
        self._new.append(partial)
        self._new_rows += partial.num_rows
        self._new_bytes += partial.nbytes
        if self._new_rows > max(self._merged.num_rows, 2**16):
            self._merge()

    @property
    def rows(self) -> int:
        """Rows that it holds; a key may be counted more than once."""
        return int(self._merged.num_rows) + self._new_rows

    @property
    def bytes(self) -> int:
        """The memory that it holds."""
        return int(self._merged.nbytes) + self._new_bytes

    def take(self) -> pa.Table:
        """One table, merged; nothing is left."""
        self._merge()
        merged, self._merged = self._merged, self._aggregation.create()
        return merged

    def _merge(self) -> None:
        self._merged = self._aggregation.merge(self._merged, *self._new)
        self._new, self._new_rows, self._new_bytes = [], 0, 0
