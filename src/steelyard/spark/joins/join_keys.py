"""Name the key of a join in both frames.

The frames and the argument `on` enter. Key columns with the same names and types in both frames
leave, and the steps that lead to the result columns of Spark's own join.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from steelyard.spark.columns import (
    HIDDEN,
    named,
    require_distinct_names,
    require_frame,
    require_key,
    require_names,
)
from steelyard.spark.joins.join_types import JoinType
from steelyard.spark.joins.key_types import compared_type

Side = Literal["big", "small"]


@dataclass(frozen=True)
class KeyColumn:
    """A column of the key in one frame: its name, its type, and its type as Spark prints it."""

    name: str
    kind: DataType
    shown: str
    is_nested: bool

    @property
    def column(self) -> Column:
        """The column."""
        return F.col(self.name) if self.is_nested else named(self.name)


@dataclass(frozen=True)
class JoinKey:
    """A column of the key in both frames.

    Args:
        name: Its name in both frames while they are joined.
        big: The column in `big`.
        small: The column in `small`.
        compared: The type in which Spark compares the two.
    """

    name: str
    big: KeyColumn
    small: KeyColumn
    compared: DataType

    @property
    def has_one_type(self) -> bool:
        """Whether Spark compares the columns as they are."""
        return self.big.shown == self.small.shown

    def of(self, side: Side) -> KeyColumn:
        """Return the column of one frame."""
        return self.big if side == "big" else self.small

    def is_cast(self, side: Side) -> bool:
        """Whether Spark compares the column of this frame in another type."""
        return self.of(side).kind.simpleString() != self.compared.simpleString()

    def value(self, side: Side) -> Column:
        """Return what Spark compares."""
        column = self.of(side).column
        return column.cast(self.compared) if self.is_cast(side) else column

    @property
    def original(self) -> str:
        """The name under which the result's value is kept, if it is not the compared one."""
        return f"{self.name}_kept"


@dataclass(frozen=True)
class JoinKeys:
    """The key of a join, and the way to the columns of Spark's own join.

    If both frames have the same key columns, Spark's join by names gives these columns. Otherwise
    each frame gets temporary columns of the same names and types. With a list of names, the result
    has each key column once, from `big` or, in a right join, from `small`; in a full join it is the
    value of either. With a dictionary, it has all columns of both frames, as with a condition.

    Args:
        columns: The columns of the key.
        how: The type of the join.
        by_condition: Whether a dictionary names the columns.
    """

    columns: Sequence[JoinKey]
    how: JoinType
    by_condition: bool

    @property
    def are_shared(self) -> bool:
        """Whether both frames have the same key columns."""
        same = (key.big.name == key.small.name and key.has_one_type for key in self.columns)
        return not self.by_condition and all(same)

    @property
    def names(self) -> tuple[str, ...]:
        """The key columns that both frames have while they are joined."""
        return tuple(key.big.name if self.are_shared else key.name for key in self.columns)

    @property
    def kinds(self) -> list[DataType]:
        """The types in which Spark compares the key columns."""
        return [key.compared for key in self.columns]

    @property
    def kept(self) -> Side | None:
        """The frame whose key columns are in the result; None if they come from both."""
        if self.how is JoinType.FULL:
            return None
        return "small" if self.how is JoinType.RIGHT else "big"

    def known(self, side: Side) -> tuple[str, ...]:
        """Return all top-level columns of one frame that hold the key."""
        own = (key.of(side) for key in self.columns)
        return tuple(dict.fromkeys([*self.names, *(c.name for c in own if not c.is_nested)]))

    def added(self, frame: DataFrame, side: Side) -> DataFrame:
        """Return a frame with its key columns."""
        if self.are_shared:
            return frame
        return frame.withColumns({key.name: key.value(side) for key in self.columns})

    def reduced(self, frame: DataFrame, side: Side) -> DataFrame:
        """Return a frame without the key columns that the result does not need."""
        if self.by_condition or self.are_shared:
            return frame
        kept = {key.of(side).name: key.original for key in self._originals() if side == self.kept}
        dropped = [name for key in self.columns if (name := key.of(side).name) not in kept]
        return frame.drop(*dropped).withColumnsRenamed(kept)

    def restored(self, joined: DataFrame) -> DataFrame:
        """Return the result with the columns of Spark's own join."""
        if self.are_shared:
            return joined
        if self.by_condition:
            return joined.drop(*self.names)
        values = {key.name: F.col(key.original) for key in self._originals()}
        joined = joined.withColumns(values) if values else joined
        final = {key.name: key.of(self.kept or "big").name for key in self.columns}
        return joined.drop(*(key.original for key in self._originals())).withColumnsRenamed(final)

    def _originals(self) -> list[JoinKey]:
        """Return the keys whose value in the result is not the compared value."""
        return [key for key in self.columns if self.kept is not None and key.is_cast(self.kept)]

    def require_plan_fits(self) -> None:
        """Refuse a plan of `big` if the join compares a key column in another type."""
        for key in self.columns:
            if key.is_cast("big"):
                raise ValueError(
                    f"routing: column {key.big.name!r} is {key.big.shown} in `big`, but the join "
                    f"compares it as {key.compared.simpleString()}; cast this column of `big`, and "
                    "pass the same frame to sy.plan and to sy.join"
                )


def join_keys(big: DataFrame, small: DataFrame, on: object, how: JoinType) -> JoinKeys:
    """Return the key of a join; refuse frames that cannot be joined by it.

    Args:
        big: The frame with hot keys.
        small: The other frame.
        on: A name, a list of names, or a dictionary from names in `big` to names in `small`.
        how: The type of the join.

    Returns:
        The key.

    Raises:
        TypeError: A frame is not a Spark DataFrame, or `on` has a wrong type.
        ValueError: A frame is a stream, or a column is missing or unsuitable.
    """
    pairs, by_condition = _pairs(on), isinstance(on, Mapping)
    for which, frame in (("big", big), ("small", small)):
        require_frame(which, frame)
        if frame.isStreaming:
            raise ValueError(f"{which} is a stream; join requires DataFrames that do not stream")
    of_big = _columns(big, "on (big)", [one for one, _ in pairs], by_condition)
    of_small = _columns(small, "on (small)", [other for _, other in pairs], by_condition)
    compared = (_compared(big, one, other) for one, other in zip(of_big, of_small, strict=True))
    both = zip(of_big, of_small, compared, strict=True)
    return JoinKeys([JoinKey(f"{HIDDEN}key{i}", *k) for i, k in enumerate(both)], how, by_condition)


def _pairs(on: object) -> list[tuple[str, str]]:
    """Return the names of the key columns in `big` and in `small`."""
    if isinstance(on, Mapping):
        pairs = list(on.items())
    else:
        names = on if isinstance(on, Sequence) and not isinstance(on, str) else [on]
        pairs = [(name, name) for name in names]
    for name in (name for pair in pairs for name in pair):
        if not isinstance(name, str):
            raise TypeError(
                f"on must be column names, got {name!r}; if the names differ, pass a dictionary "
                "from columns of big to columns of small, such as {'user': 'user_id'}"
            )
    return pairs


def _columns(
    frame: DataFrame, argument: str, names: Sequence[str], may_be_nested: bool
) -> list[KeyColumn]:
    """Return the key columns of a frame; refuse those that cannot be hashed or are not there."""
    require_distinct_names(frame)
    if not names:
        require_names(argument, names)
    has_case = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    spelled = {} if has_case else {name.lower(): name for name in frame.columns}
    found = []
    for name in names:
        own = name if name in frame.columns else spelled.get(name.lower(), name)
        is_nested = may_be_nested and own not in frame.columns and "." in own
        checked = _field(frame, argument, own) if is_nested else frame
        require_key(checked, argument, [own])
        field = checked.schema[own]
        # Spark shows char(n) as a string, and pads the shorter value when it compares two of them.
        declared = (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", "")
        shown = declared if declared.startswith("char") else field.dataType.simpleString()
        found.append(KeyColumn(own, field.dataType, shown, is_nested))
    return found


def _field(frame: DataFrame, argument: str, name: str) -> DataFrame:
    """Return a frame with one field of a struct."""
    try:
        field = frame.select(F.col(name).alias(name))
        _ = field.schema  # Spark Connect finds the field only now
    except AnalysisException:
        listed = ", ".join(frame.columns)
        raise ValueError(
            f"{argument}: there is no column or field {name!r}; the columns are {listed}"
        ) from None
    return field


def _compared(frame: DataFrame, big: KeyColumn, small: KeyColumn) -> DataType:
    """Return the type in which Spark compares two key columns; refuse unknown ones."""
    if big.shown == small.shown:
        return big.kind
    compared = None
    if not any(column.shown.startswith("char") for column in (big, small)):
        compared = compared_type(frame.sparkSession, big.kind, small.kind)
    if compared is None:
        other = "in small" if big.name == small.name else f"{small.name!r} of small"
        raise ValueError(
            f"on: column {big.name!r} is {big.shown} in big and {small.shown} {other}, and equal "
            "keys of different types have different hashes; cast one column to the type of the "
            "other"
        )
    return compared
