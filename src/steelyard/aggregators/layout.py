"""Convert columns to plain types: one Arrow type for each kind of value.

Arrow has several types for the same values. A column of any of them enters; a plain one leaves.
"""

import pyarrow as pa
import pyarrow.compute as pc


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with plain types; a column without a plain type keeps its type."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def plain_column(column: pa.Array) -> pa.Array:
    """Return the column in its plain type; floats have one zero and one NaN, as in Spark."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary.take(column.indices)
    column = as_type(column, _plain_type(column.type))
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0, column.type))
        is_nan = pc.is_nan(column)
        if pc.any(is_nan).as_py():  # NaNs differ in their sign and their payload
            column = pc.if_else(is_nan, pa.scalar(float("nan"), column.type), column)
    return column


def as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast the column if needed; Arrow cannot cast some nested columns to their own type."""
    return column if column.type == kind else column.cast(kind)


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a plain type can be summed."""
    is_real = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(is_real or pa.types.is_decimal128(kind))


def is_ordered(kind: pa.DataType) -> bool:
    """Return whether values of a plain type can be ordered."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind)
    return bool(is_number(kind) or is_text or is_bytes or is_time or pa.types.is_boolean(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Return whether values of a plain type can be keys."""
    return is_ordered(kind) or bool(pa.types.is_duration(kind) or pa.types.is_null(kind))
