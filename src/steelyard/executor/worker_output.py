"""The output of the workers of a stream: rows or blocks of rows, with a column for reports.

Results, partial states and reports enter; record batches for Spark leave. This runs inside Spark's
Python tasks and knows no Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from steelyard.aggregators.layout import as_type
from steelyard.control.reports import WorkerReport
from steelyard.executor import packing
from steelyard.executor.worker import Batches

REPORT = "__steelyard_report"
BLOCKS = pa.schema([("bin", pa.int32()), ("block", pa.binary())])

_SENT_ROWS, _SENT_BYTES = 2**18, 2**24
"""Limits of a block: rows, and roughly bytes; Spark holds a whole block in memory."""


def in_parts(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """Split rows into batches that are not too large for one block."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    size = max(1, rows.nbytes // max(1, rows.num_rows))
    most = max(1, min(_SENT_ROWS, _SENT_BYTES // size))
    return [part for part in rows.combine_chunks().to_batches(most) if part.num_rows]


def one_block(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Pack all rows into one block, with columns named by position."""
    numbered = rows.rename_columns([f"c{i}" for i in range(rows.num_columns)])
    packed = packing.packed(numbered, np.zeros(rows.num_rows, np.int32))
    return without_report(packed, BLOCKS)


def without_report(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in the types of the schema, with an empty column for reports."""
    columns = [as_type(rows.column(field.name), field.type) for field in schema]
    columns.append(pa.nulls(rows.num_rows, pa.string()))
    return pa.RecordBatch.from_arrays(columns, [*schema.names, REPORT])


def only_report(report: WorkerReport, schema: pa.Schema) -> pa.RecordBatch:
    """Return one row that holds only the report."""
    columns = [*(pa.nulls(1, kind) for kind in schema.types), pa.array([report.to_json()])]
    return pa.RecordBatch.from_arrays(columns, [*schema.names, REPORT])


@dataclass(frozen=True)
class Unpacked:
    """The rows of blocks, for the output of a stage that is slow for single rows."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in packing.unpacked(batches):
            columns = map(as_type, table.columns, self.schema.types)
            yield from pa.Table.from_arrays(list(columns), schema=self.schema).to_batches()
