"""Check the columns that a user names, and compute buckets and salts from them.

Column names enter; Spark expressions leave: the bucket of a key, the salt of a row. Outside Spark,
`steelyard.hashing` computes the same numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from steelyard.spark.versions.arrow import NOT_HASHED
from steelyard.spark.versions.supported import require_connect

HIDDEN = "__steelyard_"
"""Prefix of the temporary columns that this package adds and later drops."""


def require_frame(argument: str, frame: object) -> None:
    """Refuse a value that is not a Spark DataFrame, such as a pandas DataFrame."""
    require_connect(frame)
    if not isinstance(frame, DataFrame):
        kind = type(frame)
        found = f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
        raise TypeError(
            f"{argument} must be a Spark DataFrame, got {found.removeprefix('builtins.')}; "
            "convert pandas and Arrow data with spark.createDataFrame"
        )


def require_names(argument: str, names: Sequence[str]) -> None:
    """Refuse values that are not column names."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of column names, got {names!r}")
    if not names:
        raise ValueError(f"{argument} needs at least one column, got none")
    for name in names:
        if isinstance(name, list | tuple):
            inner = ", ".join(map(repr, name))
            raise TypeError(f"{argument}: pass the columns one by one, {inner}, not as a list")
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be column names, got {name!r}")


def require_columns(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse names that are not columns of the frame."""
    require_names(argument, names)
    for name in names:
        if name not in frame.columns:
            known = ", ".join(frame.columns)
            raise ValueError(f"{argument}: there is no column {name!r}; the columns are {known}")


def require_key(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse a key that the frame does not have, or whose equal values may have unequal hashes."""
    require_distinct_names(frame)
    require_columns(frame, argument, names)
    for name in names:
        require_key_type(argument, name, frame.schema[name].dataType)


def require_key_type(argument: str, name: str, kind: DataType) -> None:
    """Refuse a type that cannot be hashed, or whose equal values may have unequal hashes."""
    require_hash(argument, name, kind)
    found = kind.simpleString()
    if " collate " in found:
        raise ValueError(
            f"{argument}: column {name!r} is {found}, whose equal values may have different "
            "hashes; normalize the text, for example with lower, and cast it to string"
        )


def require_distinct_names(frame: DataFrame) -> None:
    """Refuse ambiguous names, and names that begin with the prefix of temporary columns."""
    names = [name.lower() for name in frame.columns]
    twice = sorted(name for name in frame.columns if names.count(name.lower()) > 1)
    if twice:
        raise ValueError(
            "the names of columns must differ in more than case; rename all but one of "
            + ", ".join(map(repr, twice))
        )
    for name in frame.columns:
        if name.lower().startswith(HIDDEN):
            raise ValueError(
                f"column names that begin with {HIDDEN} are reserved; rename {name!r} first"
            )


def require_distinct_results(
    session: SparkSession, keys: Sequence[str], results: Sequence[str]
) -> None:
    """Refuse results that Spark could not tell from another column by name.

    Args:
        session: The session, which may ignore the case of names.
        keys: The columns before the results.
        results: The names of the results.
    """
    has_case = session.conf.get("spark.sql.caseSensitive", "false") == "true"
    names = [name if has_case else name.lower() for name in (*keys, *results)]
    for place, name in enumerate(results, len(keys)):
        if names.count(names[place]) > 1:
            raise ValueError(
                f"two columns of the result would be called {name!r}; give an aggregator another "
                "name with alias"
            )
        if names[place].startswith(HIDDEN):
            raise ValueError(f"column names that begin with {HIDDEN} are reserved, got {name!r}")


def require_hashes(frame: DataFrame, argument: str, names: Sequence[str]) -> None:
    """Refuse columns that cannot be hashed."""
    for name in names:
        require_hash(argument, shown(name), frame.schema[name].dataType)


def require_hash(argument: str, name: str, kind: DataType) -> None:
    """Refuse a type that cannot be hashed."""
    if not _can_be_hashed(kind):
        raise ValueError(
            f"{argument}: column {name!r} is {kind.simpleString()}, which Spark cannot hash"
        )


def require_weight(frame: DataFrame, weight: str | None) -> None:
    """Refuse a weight that is not a numeric column."""
    if weight is None:
        return
    require_columns(frame, "weight", [weight])
    kind = frame.schema[weight].dataType
    if not isinstance(kind, NumericType):
        found = kind.simpleString()
        raise ValueError(f"weight: column {shown(weight)!r} must hold numbers, got {found}")  # noqa: TRY004


def hidden(argument: str, name: str) -> str:
    """Return the name of a temporary column for a value that the user writes.

    >>> hidden("weight", "visit.ms"), shown(hidden("weight", "visit.ms")), shown("ms")
    ('__steelyard_weight:visit.ms', 'visit.ms', 'ms')
    """
    return f"{HIDDEN}{argument}:{name}"


def shown(name: str) -> str:
    """Return the name under which the user knows a column, which may be a temporary one."""
    return name.partition(":")[2] if name.startswith(HIDDEN) else name


def visible_schema(frame: DataFrame) -> StructType:
    """Return the schema of the columns of the user."""
    return StructType([field for field in frame.schema.fields if field.name in visible(frame)])


def visible(frame: DataFrame) -> list[str]:
    """Return the columns of the user: those that are not temporary."""
    return [name for name in frame.columns if not name.startswith(HIDDEN)]


def amount_of(weight: str | None) -> Column:
    """Return an aggregate of rows: their number, or the sum of their weights."""
    if weight is None:
        return F.count(F.lit(1)).cast("double")
    return F.sum(named(weight).cast("double"))  # a sum of longs or decimals may overflow


def named(name: str) -> Column:
    """Return the column of this name, which may contain any characters."""
    return F.col("`" + name.replace("`", "``") + "`")


def seconds_of(frame: DataFrame, name: str) -> Column | None:
    """Return a column's times in seconds; None if it holds neither numbers nor timestamps."""
    kind = frame.schema[name].dataType
    if isinstance(kind, TimestampNTZType):  # read as UTC in every session time zone
        return F.try_to_timestamp(F.concat(named(name).cast("string"), F.lit("Z"))).cast("double")
    if isinstance(kind, NumericType | TimestampType):
        return named(name).cast("double")
    return None


@dataclass(frozen=True)
class Key:
    """The key columns of a frame and the number of buckets that their hashes fall into.

    Args:
        names: The columns of the key.
        buckets: The number of buckets.
        results: The names of the key columns in results; the names of the columns by default.
        computed: The expressions of columns that the frame lacks, by their names.
    """

    names: tuple[str, ...]
    buckets: int
    results: tuple[str, ...] = field(default=(), repr=False)
    computed: Mapping[str, Column] = field(default_factory=dict, repr=False, compare=False)

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the key columns in results, as `DataFrame.groupBy` gives them."""
        return self.results or self.names

    def hashed(self) -> Column:
        """Return the hash of a row's key, as a signed long."""
        return F.xxhash64(*columns_of(self.names, self.computed))

    def bucket(self) -> Column:
        """Return the bucket of a row's key."""
        return F.pmod(self.hashed(), F.lit(self.buckets)).cast("int")


def columns_of(names: Sequence[str], computed: Mapping[str, Column]) -> list[Column]:
    """Return the columns of these names; some may be computed from other columns."""
    return [computed[name] if name in computed else named(name) for name in names]


def salt_columns(frame: DataFrame, salt: Sequence[str] | None, key: Sequence[str]) -> list[str]:
    """Return the salt columns: those of the user, or else all columns that Spark can hash.

    Key columns are left out unless there are no others.
    """
    if salt is not None:
        require_columns(frame, "salt", salt)
        require_hashes(frame, "salt", salt)
        return list(salt)
    found = [name for name in visible(frame) if _can_be_hashed(frame.schema[name].dataType)]
    return [name for name in found if name not in key] or found


def salt_of(names: Sequence[str], computed: Mapping[str, Column] = MappingProxyType({})) -> Column:
    """Return a number that depends only on a row's content, so that a task retry repeats it.

    The high half of the salt selects a cell; a bucket comes from the low bits of a hash. The two
    are independent even where both use the same columns. Without columns the salt is constant.

    Args:
        names: The salt columns.
        computed: The expressions of columns that the frame lacks, by their names.
    """
    return F.xxhash64(*columns_of(names, computed)) if names else F.lit(0).cast("long")


def _can_be_hashed(kind: DataType) -> bool:
    if isinstance(kind, NOT_HASHED):
        return False
    if isinstance(kind, StructType):
        return all(_can_be_hashed(field.dataType) for field in kind.fields)
    inner = getattr(kind, "elementType", None)
    return inner is None or _can_be_hashed(inner)
