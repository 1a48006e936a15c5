"""Call a function of pandas DataFrames with Arrow tables.

A table enters; the table that the function makes of it leaves. Values have the types that Spark's
`mapInPandas`, or its `applyInPandas`, gives them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

PandasFunction = Callable[..., Any]
"""A function from one pandas DataFrame to another; it may get the values of a key first."""

Key = tuple[Any, ...]
"""The values of a key, one for each column."""


@dataclass(frozen=True)
class OnPandas:
    """A function of pandas DataFrames, as a function of Arrow tables."""

    function: PandasFunction
    schema: pa.Schema
    """The columns of the result."""
    zone: str
    """The time zone of the session, in which timestamps have no time zone of their own."""
    call: str = "map_pandas"
    """The method that the user called, for error messages."""
    argument: str = "function"
    """The argument of that method which this function is."""
    takes_key: bool = False
    """Whether the function gets the values of the key before the rows."""
    exact_integers: bool = True
    """Whether integers beside a null stay integers, as in `mapInPandas`; in `applyInPandas` they
    become floating-point numbers."""
    computed: tuple[str, ...] = ()
    """The columns of the key that the rows of the user do not have; the function gets none."""

    def __call__(self, table: pa.Table) -> pa.Table:
        return self.table_of(self.of_frame(self.frame_of(table)))

    def of_key(self, table: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return the result for rows that have the same values in the columns of the key."""
        return self.table_of(self.frame_for_key(table, key))

    def frame_for_key(self, table: pa.Table, key: Sequence[str]) -> Any:
        """Return the same result as a DataFrame with any columns."""
        frame = self.frame_of(table)
        return self.of_frame(frame.drop(columns=list(self.computed)), self.key_of(frame, key))

    def key_of(self, frame: Any, key: Sequence[str]) -> Key:
        """Return the values of the key in the first row; nothing if the function gets no key."""
        if not self.takes_key:
            return ()
        return tuple(frame[name].iloc[0] for name in key)

    def of_frame(self, frame: Any, key: Key = ()) -> Any:
        """Return the DataFrame that the function makes of a DataFrame."""
        made = self.function(key, frame) if self.takes_key else self.function(frame)
        if not all(hasattr(made, name) for name in ("columns", "dtypes", "itertuples")):
            raise TypeError(
                f"{self._named} must return a pandas DataFrame, got {type(made).__name__}"
            )
        return made

    def frame_of(self, table: pa.Table) -> Any:
        """Return the rows of a table as a DataFrame."""
        frame = table.to_pandas(
            date_as_object=True,
            maps_as_pydicts="strict",
            coerce_temporal_nanoseconds=True,
            integer_object_nulls=True,  # as floating-point numbers, large integers would be rounded
        )
        for field in table.schema:
            if pa.types.is_integer(field.type) and table[field.name].null_count:
                exact = str(field.type).replace("int", "Int").replace("uI", "UI")
                kind = exact if self.exact_integers else "float64"
                frame[field.name] = frame[field.name].astype(kind)
            if _has_zone(field.type):
                local = frame[field.name].dt.tz_convert(self.zone)
                frame[field.name] = local.dt.tz_localize(None)
        return frame

    def table_of(self, made: Any) -> pa.Table:
        """Return a result of the function as a table with the columns and types of the schema."""
        if not len(made) and not len(made.columns):
            return self.schema.empty_table()
        columns = [
            self._column_of(values, field)
            for values, field in zip(self._in_order(made), self.schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _in_order(self, made: Any) -> list[Any]:
        """Return the columns of a result in the order of the schema.

        As in Spark, columns are found by name, or by position if no label is a text.
        """
        wanted = self.schema.names
        has_names = any(isinstance(label, str) for label in made.columns)
        if not has_names and len(made.columns) == len(wanted):
            return [made.iloc[:, place] for place in range(len(wanted))]
        names = [str(label) for label in made.columns]
        if sorted(names) != sorted(wanted):
            raise ValueError(
                f"{self._named} must return the columns of the schema, {', '.join(wanted)}, "
                f"got {', '.join(names) or 'none'}"
            )
        return [made[name] for name in wanted]

    def _column_of(self, values: Any, field: pa.Field) -> pa.Array:
        # A time without a zone is one of the session's zone. In the hour that occurs twice, when
        # summer time ends, it is the later one, as in Spark.
        if _has_zone(field.type) and values.dtype.kind == "M" and values.dt.tz is None:
            values = values.dt.tz_localize(self.zone, ambiguous=False)
        try:
            return pa.Array.from_pandas(values, type=field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self._named} must return {field.type} in column {field.name!r}, as the schema "
                f"says, got {values.dtype} values that do not fit: {error}"
            ) from error

    @property
    def _named(self) -> str:
        """The beginning of an error message: the method, the argument and the function."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"{self.call}: {self.argument} {name!r}"


def together(frames: Sequence[Any]) -> Any:
    """Return the rows of several DataFrames in one, numbered from 0."""
    # Imported here, because only executors that run functions of pandas need it.
    import pandas as pd

    with_columns = [frame for frame in frames if len(frame) or len(frame.columns)]
    return pd.concat(with_columns or list(frames), ignore_index=True)


def _has_zone(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is not None
