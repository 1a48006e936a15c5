"""Store partial states as values of Spark's state store.

A table and the definition of its query enter; bytes leave, cut into pieces if they are long. The
bytes become the same table again.
"""

import pyarrow as pa

from steelyard.aggregators.layout import as_type
from steelyard.control.definition import Definition

PIECE = 2**20
"""Bytes of a piece of state; the JVM holds several copies of each value in memory."""

_IN_PIECES = b"in pieces: "
"""Prefix of a value that holds only the number of its pieces; no Arrow stream begins with it."""


def encoded(table: pa.Table, definition: Definition, settings: dict[str, str]) -> bytes:
    """Encode a table as a value of Spark's state, with the definition of the query."""
    table = table.replace_schema_metadata({**settings, "definition": definition.to_json()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def decoded(
    kept: bytes, definition: Definition, schema: pa.Schema
) -> tuple[pa.Table, dict[str, str]]:
    """Return the table and the settings that `encoded` wrote.

    Raises:
        ValueError: The value belongs to a query with another definition.
    """
    table = pa.ipc.open_stream(kept).read_all()
    settings = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    if "definition" in settings:
        definition.require_same(settings["definition"])
    elif table.schema.names != schema.names or table.schema.types != schema.types:
        raise ValueError(  # an older version wrote no definitions
            f"the checkpoint has the state {_columns(table.schema)}, and this query has "
            f"{_columns(schema)}: keep the key and the aggregators, or use a new checkpoint"
        )
    columns = list(map(as_type, table.columns, schema.types))
    return pa.Table.from_arrays(columns, schema=schema), settings


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def cut(value: bytes) -> tuple[bytes, list[bytes]]:
    """Cut a long value into pieces; return the short value that replaces it, and the pieces.

    >>> cut(b"short")
    (b'short', [])
    >>> first, pieces = cut(b"x" * (PIECE + 5))
    >>> first, [len(piece) for piece in pieces]
    (b'in pieces: 2', [1048576, 5])
    >>> pieces_of(first)
    2
    """
    if len(value) <= PIECE:
        return value, []
    pieces = [value[start : start + PIECE] for start in range(0, len(value), PIECE)]
    return _IN_PIECES + str(len(pieces)).encode(), pieces


def pieces_of(first: bytes) -> int:
    """Return the number of pieces of a value; 0 if it is whole."""
    return int(first.removeprefix(_IN_PIECES)) if first.startswith(_IN_PIECES) else 0
