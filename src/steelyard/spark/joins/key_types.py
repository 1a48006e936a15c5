"""Find the type in which Spark compares keys of two types.

The types of a key in both frames enter; the type to which Spark casts both in `a = b` leaves. Equal
values of this type have equal hashes.
"""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

_TIMES = (DateType, TimestampType, TimestampNTZType)


def compared_type(session: SparkSession, one: DataType, other: DataType) -> DataType | None:
    """Return the type in which Spark compares values of these types; None if it is not known.

    Numbers are compared in the type that both have in `coalesce`, and so are dates and timestamps.
    In ANSI mode, Spark casts text to the type of the other side, but to bigint or double for
    numbers. Without ANSI mode, text that is no number would silently become null.

    >>> from pyspark.sql.types import IntegerType
    >>> compared_type(spark, IntegerType(), LongType())
    LongType()
    """
    if one.simpleString() == other.simpleString():
        return one
    if _are_both(one, other, NumericType) or _are_both(one, other, _TIMES):
        empty = session.range(0).select(F.lit(None).cast(one), F.lit(None).cast(other))
        first, second = empty.toDF("one", "other"), ["one", "other"]
        return first.select(F.coalesce(*map(F.col, second))).schema[0].dataType
    is_ansi = session.conf.get("spark.sql.ansi.enabled") == "true"
    for text, kind in ((one, other), (other, one)):
        if type(text) is StringType and text.simpleString() == "string" and is_ansi:
            return _type_for_text(kind)
    return None


def _are_both(
    one: DataType, other: DataType, kinds: type[DataType] | tuple[type[DataType], ...]
) -> bool:
    return isinstance(one, kinds) and isinstance(other, kinds)


def _type_for_text(kind: DataType) -> DataType | None:
    """Return the type in which ANSI mode compares text with values of another type."""
    if isinstance(kind, IntegralType):
        return LongType()
    if isinstance(kind, FloatType | DoubleType | DecimalType):
        return DoubleType()
    return kind if isinstance(kind, _TIMES) else None
