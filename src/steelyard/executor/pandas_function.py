"""Call a function of pandas DataFrames with Arrow tables.

A table enters; the table that the function makes of it leaves. Values have the types that Spark's
`mapInPandas` gives them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

PandasFunction = Callable[[Any], Any]
"""A function from one pandas DataFrame to another."""


@dataclass(frozen=True)
class OnPandas:
    """A function of pandas DataFrames, as a function of Arrow tables."""

    function: PandasFunction
    schema: pa.Schema
    """The columns of the result."""
    zone: str
    """The time zone of the session, in which timestamps have no time zone of their own."""

    def __call__(self, table: pa.Table) -> pa.Table:
        return self._table_of(self.function(self._frame_of(table)))

    def _frame_of(self, table: pa.Table) -> Any:
        frame = table.to_pandas(
            date_as_object=True,
            maps_as_pydicts="strict",
            coerce_temporal_nanoseconds=True,
            integer_object_nulls=True,  # as floating-point numbers, large integers would be rounded
        )
        for field in table.schema:
            if pa.types.is_integer(field.type) and table[field.name].null_count:
                kind = str(field.type).replace("int", "Int").replace("uI", "UI")
                frame[field.name] = frame[field.name].astype(kind)
            if _has_zone(field.type):
                local = frame[field.name].dt.tz_convert(self.zone)
                frame[field.name] = local.dt.tz_localize(None)
        return frame

    def _table_of(self, made: Any) -> pa.Table:
        if not all(hasattr(made, name) for name in ("columns", "dtypes", "itertuples")):
            raise TypeError(
                "map_pandas: the function must return a pandas DataFrame, "
                f"got {type(made).__name__}"
            )
        names = [str(name) for name in made.columns]
        if sorted(names) != sorted(self.schema.names):
            raise ValueError(
                f"map_pandas: the schema names the columns {', '.join(self.schema.names)}, but the "
                f"function returned {', '.join(names) or 'none'}"
            )
        columns = [self._column_of(made[field.name], field) for field in self.schema]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _column_of(self, values: Any, field: pa.Field) -> pa.Array:
        # A time without a zone is one of the session's zone. In the hour that occurs twice, when
        # summer time ends, it is the later one, as in Spark.
        if _has_zone(field.type) and values.dtype.kind == "M" and values.dt.tz is None:
            values = values.dt.tz_localize(self.zone, ambiguous=False)
        try:
            return pa.Array.from_pandas(values, type=field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(
                f"map_pandas: the schema has {field.type} for column {field.name!r}, but the "
                f"function returned {values.dtype} values that do not fit: {error}"
            ) from error


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None
