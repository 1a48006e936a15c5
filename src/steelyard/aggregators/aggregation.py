"""Apply several aggregators to the same keys.

Record batches enter; partial tables leave, and merged partial tables become results.
"""

from collections.abc import Sequence

import pyarrow as pa

from steelyard.aggregators.base import Aggregator
from steelyard.aggregators.groups import Groups
from steelyard.aggregators.layout import as_type, is_plain, plain_column, plain_schema


class Aggregation:
    """Create, add, merge and result: the four steps of mergeable state, on Arrow tables.

    A partial table has one row per key: the key columns first, then the state columns of each
    aggregator. The partial tables of all workers merge, in any order and any nesting, into the
    table that one worker would have for all rows.

    >>> from steelyard.aggregators import Count, Sum
    >>> rows = pa.record_batch({"page": ["a", "b", "a"], "bytes": [1, 2, 3]})
    >>> traffic = Aggregation([Count(), Sum("bytes")], by=["page"], schema=rows.schema)
    >>> here = traffic.add(traffic.create(), rows)
    >>> there = traffic.add(traffic.create(), rows.slice(0, 1))
    >>> traffic.result(traffic.merge(here, there)).to_pydict()
    {'page': ['a', 'b'], 'count': [3, 1], 'sum(bytes)': [5, 2]}
    """

    def __init__(
        self, aggregators: Sequence[Aggregator], by: Sequence[str], schema: pa.Schema
    ) -> None:
        if not aggregators:
            raise ValueError("an aggregation needs at least one aggregator, got none")
        if not by:
            raise ValueError("an aggregation needs at least one key column, got none")
        self.aggregators = tuple(aggregators)
        self.by = tuple(by)
        schema = plain_schema(schema)
        self._keys = [_key_field(schema, column) for column in by]
        for aggregator in self.aggregators:
            aggregator.check(schema)
        results = [
            pa.field(aggregator.name, aggregator.result_type(schema))
            for aggregator in self.aggregators
        ]
        self.result_schema = _schema_of_distinct(self._keys + results)
        states = [
            pa.field(f"{aggregator.name}.{name}", kind)
            for aggregator in self.aggregators
            for name, kind in aggregator.state(schema).items()
        ]
        self.partial_schema = _schema_of_distinct(self._keys + states)
        widths = [len(aggregator.state(schema)) for aggregator in self.aggregators]
        ends = [len(by) + sum(widths[: i + 1]) for i in range(len(widths))]
        self._spans = [slice(end - width, end) for width, end in zip(widths, ends, strict=True)]

    def create(self) -> pa.Table:
        """Return a partial table without rows."""
        return self.partial_schema.empty_table()

    def add(self, partial: pa.Table, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        """Return the partial table with these rows added."""
        batch = self._plain(_one_batch(rows))
        if batch.num_rows == 0:
            return partial
        groups = Groups.of([batch.column(column) for column in self.by])
        first = pa.array(groups.first_rows())
        columns = [batch.column(column).take(first) for column in self.by]
        for aggregator in self.aggregators:
            columns += aggregator.add(batch, groups)
        fresh = pa.Table.from_arrays(columns, schema=self.partial_schema)
        return self.merge(partial, fresh) if partial.num_rows else fresh

    def _plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that the aggregators and the key read, each in its plain type."""
        read = dict.fromkeys([*self.by, *(c for a in self.aggregators for c in a.columns)])
        return pa.record_batch({name: plain_column(batch.column(name)) for name in read})

    def merge(self, *partials: pa.Table) -> pa.Table:
        """Merge partial tables into one with one row per key."""
        batch = _one_batch(pa.concat_tables([self.create(), *partials]))
        if batch.num_rows == 0:
            return self.create()
        keys = [batch.column(i) for i in range(len(self.by))]
        groups = Groups.of(keys)
        first = pa.array(groups.first_rows())
        columns = [key.take(first) for key in keys]
        for aggregator, span in zip(self.aggregators, self._spans, strict=True):
            columns += aggregator.merge(batch.columns[span], groups)
        return pa.Table.from_arrays(columns, schema=self.partial_schema)

    def result(self, partial: pa.Table) -> pa.Table:
        """Return the key columns and one column per aggregator; `partial` must be merged."""
        batch = _one_batch(partial)
        columns = list(batch.columns[: len(self.by)])
        for aggregator, span in zip(self.aggregators, self._spans, strict=True):
            columns.append(aggregator.result(batch.columns[span]))
        kinds = self.result_schema.types
        columns = [as_type(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.result_schema)


def _one_batch(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    columns = [
        column.combine_chunks() if column.num_chunks else pa.array([], column.type)
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _key_field(schema: pa.Schema, column: str) -> pa.Field:
    if schema.names.count(column) != 1:
        found = "no" if column not in schema.names else "more than one"
        raise ValueError(
            f"there is {found} column {column!r} to group by; the columns are {schema.names}"
        )
    field = schema.field(column)
    if not is_plain(field.type):
        raise ValueError(
            f"the key {column!r} must be a boolean, a number of at most 128 bits, a string, bytes "
            f"or a time, got {field.type}"
        )
    return field


def _schema_of_distinct(fields: Sequence[pa.Field]) -> pa.Schema:
    """Return the schema of these fields; raise a ValueError if two have the same name."""
    names = [field.name for field in fields]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValueError(f"two columns of the result would be called {duplicates[0]!r}")
    return pa.schema(fields)
