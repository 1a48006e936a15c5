"""Columns of a frame: which ones are meant, and what is computed from them.

Names enter; Spark expressions leave: the bucket of a key, the salt of a row. The same numbers come
from `steelyard.hashing` outside Spark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    MapType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

HIDDEN = "__steelyard_"
"""Columns that exist between two steps only begin like this."""


def require_frame(argument: str, frame: object) -> None:
    """Refuse what is no frame of Spark's, such as one of pandas."""
    if not isinstance(frame, DataFrame):
        kind = type(frame)
        found = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
        raise TypeError(
            f"{argument} must be a Spark DataFrame, got {found.removeprefix('builtins.')}; "
            "spark.createDataFrame makes one of pandas' or Arrow's"
        )


def require_names(argument: str, names: Sequence[str]) -> None:
    """Refuse what cannot be names of columns."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of names of columns, got {names!r}")
    if not names:
        raise ValueError(f"{argument} needs at least one column, got none")
    for name in names:
        if isinstance(name, list | tuple):
            inner = ", ".join(map(repr, name))
            raise TypeError(f"{argument}: name the columns one by one, {inner}, not as a list")
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be names of columns, got {name!r}")


def require_columns(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse names that the frame does not have."""
    require_names(argument, names)
    for name in names:
        if name not in frame.columns:
            known = ", ".join(frame.columns)
            raise ValueError(f"{argument}: there is no column {name!r}; the columns are {known}")


def require_key(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse a key that the frame does not have, or whose equal values may hash differently."""
    require_distinct_names(frame)
    require_columns(frame, argument, names)
    require_hashes(frame, argument, names)
    for name in names:
        kind = frame.schema[name].dataType.simpleString()
        if " collate " in kind:
            raise ValueError(
                f"{argument}: column {name!r} is {kind}, which may call different texts equal, and "
                "hashes do not; bring the texts to one form, as with lower, and cast them to string"
            )


def require_distinct_names(frame: DataFrame) -> None:
    """Refuse two columns of one name, as nobody could say which is meant, and names of our own."""
    names = [name.lower() for name in frame.columns]
    twice = sorted({name for name in frame.columns if names.count(name.lower()) > 1})
    if twice:
        raise ValueError(
            f"the frame has more than one column named {', '.join(twice)}; rename them first"
        )
    for name in frame.columns:
        if name.lower().startswith(HIDDEN):
            raise ValueError(f"names that begin with {HIDDEN} are in use; rename {name!r} first")


def require_hashes(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse columns that cannot be hashed."""
    for name in names:
        kind = frame.schema[name].dataType
        if not _can_be_hashed(kind):
            raise ValueError(
                f"{argument}: column {name!r} is {kind.simpleString()}, which has no hash"
            )


def require_weight(frame: DataFrame, weight: str | None) -> None:
    """Refuse a weight that is no column of numbers."""
    if weight is None:
        return
    require_columns(frame, "weight", [weight])
    kind = frame.schema[weight].dataType
    if not isinstance(kind, NumericType):
        found = kind.simpleString()
        raise ValueError(f"weight: column {weight!r} must hold numbers, got {found}")  # noqa: TRY004


def named(name: str) -> Column:
    """The column of this name, whatever characters are in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def seconds_of(frame: DataFrame, name: str) -> Column | None:
    """The times of a column in seconds; None if it holds neither numbers nor timestamps."""
    kind = frame.schema[name].dataType
    if isinstance(kind, TimestampNTZType):  # told in UTC, whatever the zone of the session
        return F.try_to_timestamp(F.concat(named(name).cast("string"), F.lit("Z"))).cast("double")
    if isinstance(kind, NumericType | TimestampType):
        return named(name).cast("double")
    return None


@dataclass(frozen=True)
class Key:
    """The columns by which rows belong together."""

    names: tuple[str, ...]
    buckets: int

    def hashed(self) -> Column:
        """The hash of a row's key, as a signed long."""
        return F.xxhash64(*map(named, self.names))

    def bucket(self) -> Column:
        """The bucket of a row's key."""
        return F.pmod(self.hashed(), F.lit(self.buckets)).cast("int")


def salt_columns(frame: DataFrame, salt: Sequence[str] | None, key: Sequence[str]) -> list[str]:
    """The columns that tell rows of one key apart: the user's, or all others that can be hashed."""
    if salt is not None:
        require_columns(frame, "salt", salt)
        require_hashes(frame, "salt", salt)
        return list(salt)
    found = [field.name for field in frame.schema.fields if _can_be_hashed(field.dataType)]
    return [name for name in found if name not in key] or found


def salt_of(names: Sequence[str]) -> Column:
    """A number that depends on a row's content alone, so that a task that is run again repeats it.

    Its high half decides, the bucket comes from the low end of a hash: they have nothing in common
    even where both are of the same columns. Without any column it is the same for all rows.
    """
    return F.xxhash64(*map(named, names)) if names else F.lit(0).cast("long")


def _can_be_hashed(kind: DataType) -> bool:
    if isinstance(kind, MapType | VariantType):
        return False
    if isinstance(kind, StructType):
        return all(_can_be_hashed(field.dataType) for field in kind.fields)
    inner = getattr(kind, "elementType", None)
    return inner is None or _can_be_hashed(inner)
