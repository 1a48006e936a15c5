"""The packed exchange: rows travel in blocks, one for each bin, instead of one by one.

Record batches enter; (bin, block) rows leave, and at the other end tables of rows again. A block
is an Arrow stream. This runs inside Spark's Python tasks and knows no Spark.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from steelyard.hashing import spread
from steelyard.plans import Planner

if TYPE_CHECKING:  # schemes need numba, which executors without schemes do not have
    from steelyard.schemes import Scheme

SCHEMA = "bin int, block binary"

_ROWS, _BYTES = 2**18, 2**25
"""Limits at which gathered rows are sorted into blocks; larger blocks have less overhead."""

_WORKED_ROWS = 2**16
"""Rows at which blocks are joined into one table; `_BYTES` is the other limit."""

Bins = NDArray[np.integer]
Decide = Callable[[pa.RecordBatch], Bins]


class Destinations(ABC):
    """A rule that chooses the bins of rows in a source task, from columns that stay there."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The columns that only this rule reads."""

    @abstractmethod
    def start(self) -> Decide:
        """Return the function that chooses bins in one task; it may keep state between calls."""


@dataclass(frozen=True)
class Decided(Destinations):
    """Bins that are in a column already."""

    bin: str

    @property
    def columns(self) -> list[str]:
        return [self.bin]

    def start(self) -> Decide:
        return lambda rows: rows.column(self.bin).to_numpy()


@dataclass(frozen=True)
class PlannedHere(Destinations):
    """Bins by plans from the gathered rows themselves, up to 2**18 rows at a time.

    The position of a row decides where the rows of a hot key go. A retry of the task must
    therefore get the same rows in the same order.
    """

    bucket: str
    weight: str | None
    bins: int
    epsilon: float
    buckets: int
    capacities: Sequence[float] | None

    @property
    def columns(self) -> list[str]:
        return [self.bucket] if self.weight is None else [self.bucket, self.weight]

    def start(self) -> Decide:
        # Each plan stays close to the previous one, so earlier counts need not be kept.
        planner = Planner(self.bins, self.epsilon, self.buckets, self.capacities, decay=0)
        seen = 0

        def decide(rows: pa.RecordBatch) -> Bins:
            nonlocal seen
            buckets = rows.column(self.bucket).to_numpy()
            counts = np.bincount(buckets, self._weights(rows), self.buckets)
            plan = planner.update(counts) if counts.any() else planner.plan
            salts = spread(np.arange(seen, seen + rows.num_rows))
            seen += rows.num_rows
            return plan.route(buckets, salts)

        return decide

    def _weights(self, rows: pa.RecordBatch) -> NDArray[np.float64] | None:
        if self.weight is None:
            return None
        weights: NDArray[np.float64] = pc.fill_null(rows.column(self.weight), 0.0).to_numpy()
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("weight: the column must hold numbers of at least 0")
        return weights


@dataclass(frozen=True)
class RoutedHere(Destinations):
    """Bins by a scheme, row by row, from the hash of the key and the rows routed before."""

    hashed: str
    scheme: "Scheme"
    bins: int

    @property
    def columns(self) -> list[str]:
        return [self.hashed]

    def start(self) -> Decide:
        router = self.scheme.router(self.bins)
        return lambda rows: router.route_many(rows.column(self.hashed).to_numpy().view(np.uint64))


@dataclass(frozen=True)
class Packer:
    """The source side of the exchange: rows, sorted by bin, become one block for each bin."""

    destinations: Destinations
    names: tuple[str, ...]
    """The names of the columns, in order; the names in the batches are ignored."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        decide = self.destinations.start()
        for rows in gathered(batches):
            rows = rows.rename_columns(list(self.names))  # noqa: PLW2901
            yield packed(rows.drop_columns(self.destinations.columns), decide(rows))


def packed(rows: pa.RecordBatch, bins: Bins) -> pa.RecordBatch:
    """Return one row (bin, block) for each bin that occurs."""
    small = bins.astype(np.uint16 if not bins.size or bins.max() < 2**16 else np.uint32)
    order = np.argsort(small, kind="stable")  # a radix sort for 16 bits
    rows, small = rows.take(pa.array(order)), small[order]
    starts = np.flatnonzero(np.diff(small, prepend=small[:1] + 1))
    stops = np.append(starts[1:], small.size)
    blocks = pa.BufferOutputStream()
    offsets = [0]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        with pa.ipc.new_stream(blocks, rows.schema) as block:
            block.write_batch(rows.slice(start, stop - start))
        offsets.append(blocks.tell())
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), blocks.getvalue()]
    column = pa.Array.from_buffers(pa.binary(), starts.size, buffers)
    bin_column = pa.array(small[starts].astype(np.int32))
    return pa.RecordBatch.from_arrays([bin_column, column], ["bin", "block"])


def unpacked(batches: Iterable[pa.RecordBatch], *, all_at_once: bool = False) -> Iterator[pa.Table]:
    """Yield the rows of blocks as tables of about 2**16 rows, or as one table."""
    waiting: list[pa.Table] = []
    rows = size = 0
    for batch in batches:
        for block in batch.column("block").drop_null():
            table = pa.ipc.open_stream(block.as_buffer()).read_all()
            waiting.append(table)
            rows += table.num_rows
            size += table.nbytes
            if not all_at_once and (rows >= _WORKED_ROWS or size >= _BYTES):
                yield pa.concat_tables(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join batches into longer ones with the same rows."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= _ROWS or size >= _BYTES:
            yield _one_batch(pa.Table.from_batches(waiting))
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _one_batch(pa.Table.from_batches(waiting))


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table that is not empty as one batch."""
    (batch,) = table.combine_chunks().to_batches()
    return batch
