"""Process the rows of a worker, which arrive in blocks.

Blocks enter; record batches leave. This runs inside Spark's Python tasks and knows no Spark.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from steelyard.aggregators import Aggregation
from steelyard.aggregators.layout import as_type
from steelyard.executor import packing

Batches = Iterable[pa.RecordBatch]
Function = Callable[[pa.Table], pa.Table | pa.RecordBatch]

_MOST_KEYS, _MOST_BYTES = 2**20, 2**28
"""Limits above which a worker sends its partial states on; they bound its memory."""


class Task(ABC):
    """One task of a worker: tables of rows enter one by one; record batches leave."""

    @abstractmethod
    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Process some rows, and yield the output that is ready."""

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield the rest of the output, after all rows."""
        return iter(())

    @property
    def made(self) -> "Made":
        """The size of all partial results of this task, once it is done."""
        return Made()


class Made(NamedTuple):
    """The size of partial results: their number of keys and their memory in bytes."""

    keys: int = 0
    bytes: int = 0


class Worker(ABC):
    """The settings of the work on rows; they create tasks."""

    all_at_once = False

    @abstractmethod
    def start(self) -> Task:
        """Return a new task."""

    def calls(self) -> Iterator[pa.RecordBatch]:
        """Yield rows without states for the first micro-batch of a stream.

        They make every bin of the next stage store the definition of the query.
        """
        return iter(())

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        task = self.start()
        for table in packing.unpacked(batches, all_at_once=self.all_at_once):
            yield from task.work(table)
        yield from task.finish()


@dataclass(frozen=True)
class Map(Worker):
    """A function of the user, called with tables of rows."""

    function: Function
    schema: pa.Schema
    all_at_once: bool = False

    def start(self) -> Task:
        return _Mapping(self)


class _Mapping(Task):
    def __init__(self, settings: Map) -> None:
        self._settings = settings

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from self._as_promised(self._settings.function(table)).to_batches()

    def _as_promised(self, made: object) -> pa.Table:
        """Return the result of the function with the columns and types of the schema."""
        schema = self._settings.schema
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        if not isinstance(made, pa.Table):
            raise TypeError(
                "map_arrow: the function must return a pyarrow Table or RecordBatch, "
                f"got {type(made).__name__}"
            )
        if sorted(made.column_names) != sorted(schema.names):
            raise ValueError(
                f"map_arrow: the schema names the columns {', '.join(schema.names)}, but the "
                f"function returned {', '.join(made.column_names) or 'none'}"
            )
        columns = [_cast(made[field.name], field) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    """Cast a column to the type in the schema; refuse to add or drop a time zone."""
    if _changes_zone(column.type, field.type):
        raise ValueError(
            f"map_arrow: the schema has {field.type} for column {field.name!r}, but the function "
            f"returned {column.type}, and only one of them has a time zone; convert the column "
            "with pyarrow.compute.assume_timezone or local_timestamp, or put timestamp_ntz into "
            "the schema"
        )
    return as_type(column, field.type)


def _changes_zone(made: pa.DataType, promised: pa.DataType) -> bool:
    """Whether a cast adds or drops a time zone; Arrow would then assume UTC."""
    if _has_zone(made) != _has_zone(promised):
        other = promised if _has_zone(made) else made
        return bool(pa.types.is_timestamp(other) or pa.types.is_date(other))
    if made.num_fields != promised.num_fields:
        return False
    return any(
        _changes_zone(made.field(i).type, promised.field(i).type) for i in range(made.num_fields)
    )


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None


@dataclass(frozen=True)
class Add(Worker):
    """The aggregation of rows into partial states, in blocks by the bucket of their key."""

    aggregation: Aggregation
    bucket: str
    bins: int

    def start(self) -> Task:
        return _Adding(self)

    def calls(self) -> Iterator[pa.RecordBatch]:
        bins = pa.array(range(self.bins), pa.int32())
        yield pa.record_batch({"bin": bins, "block": pa.nulls(self.bins, pa.binary())})


class _Adding(Task):
    def __init__(self, settings: Add) -> None:
        self._settings = settings
        self._states = States(settings.aggregation)

    def work(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        self._states.add(table)
        if self._states.are_many:
            yield from self._blocks(self._states.take())

    def finish(self) -> Iterator[pa.RecordBatch]:
        if self._states.rows:
            yield from self._blocks(self._states.take())

    @property
    def made(self) -> Made:
        return self._states.taken

    def _blocks(self, states: pa.Table) -> Iterator[pa.RecordBatch]:
        settings = self._settings
        for rows in states.to_batches():
            yield packing.packed(rows, rows.column(settings.bucket).to_numpy() % settings.bins)


@dataclass(frozen=True)
class Merge:
    """The merge of the partial states of each key into its result."""

    aggregation: Aggregation
    bucket: str

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        states = States(self.aggregation)
        for table in packing.unpacked(batches):
            states.append(table)
        if states.rows:
            result = self.aggregation.result(states.take())
            yield from result.drop_columns([self.bucket]).to_batches()


class States:
    """Partial states of many keys, merged each time their number of rows doubles.

    Each row therefore takes part in few merges.
    """

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._merged = aggregation.create()
        self._new: list[pa.Table] = []
        self._new_rows = self._new_bytes = 0
        self.taken = Made()
        """The size of all tables that `take` returned."""

    def append(self, partial: pa.Table) -> None:
        self._new.append(partial)
        self._new_rows += partial.num_rows
        self._new_bytes += partial.nbytes
        if self._new_rows > max(self._merged.num_rows, 2**16):
            self.merge()

    def add(self, rows: pa.Table) -> None:
        """Aggregate rows of the input."""
        self.append(self._aggregation.add(self._aggregation.create(), rows))

    @property
    def are_many(self) -> bool:
        """Whether the states exceed the limits, so that the worker has to send them on."""
        return self.rows > _MOST_KEYS or self.bytes > _MOST_BYTES

    @property
    def rows(self) -> int:
        """The number of rows held; a key may be counted more than once."""
        return int(self._merged.num_rows) + self._new_rows

    @property
    def bytes(self) -> int:
        """The memory of the rows held."""
        return int(self._merged.nbytes) + self._new_bytes

    def take(self) -> pa.Table:
        """Return all states as one merged table, and forget them."""
        self.merge()
        merged, self._merged = self._merged, self._aggregation.create()
        self.taken = Made(self.taken.keys + merged.num_rows, self.taken.bytes + merged.nbytes)
        return merged

    def merge(self) -> int:
        """Merge all states of each key; return their memory afterwards."""
        self._merged = self._aggregation.merge(self._merged, *self._new)
        self._new, self._new_rows, self._new_bytes = [], 0, 0
        return self.bytes
