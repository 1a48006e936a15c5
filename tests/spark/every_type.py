"""Frames with columns of every Spark type, and the results that aggregators should give for them.

The expected results come from Spark's own functions where they exist, else from the values that
Spark collects. Values are compared as numbers, so Python's time zone does not matter.
"""

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, LongType, StructField, StructType

import steelyard as sy
from steelyard.spark.versions.arrow import to_arrow
from tests.spark.streaming.running import kept

ROWS, KEY = 160, "key_"
ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"

SETTINGS = pytest.mark.parametrize(
    "settings",
    [{ZONE: "America/New_York", ANSI: "true"}, {ZONE: "Asia/Kolkata", ANSI: "false"}],
    ids=["New York, ANSI", "Kolkata, no ANSI"],
)


@contextmanager
def under(spark, settings):
    """Apply these settings, and restore the previous ones at the end."""
    with kept(spark, settings):
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield


class Level(IntEnum):
    """The operations that a column supports; each level supports those of all lower levels."""

    FOREIGN = 0
    """No operation: Arrow has no type for the values."""
    COUNTED = 1
    PLAIN = 2
    """The values can be keys."""
    ORDERED = 3
    NUMBER = 4
    SUMMED = 5
    """The sum of the values fits into its type."""


@dataclass(frozen=True)
class Kind:
    """A column: its name, the operations that it supports, and its values as SQL expressions."""

    name: str
    level: Level
    values: tuple[str, ...]
    since: str = "3.5"
    """The first version of Spark with the type."""

    def at(self, place):
        """Return the value at an index from 0; null after the last value."""
        return f"get(array({', '.join(self.values)}), int({place}))"


def _decimal(precision, scale):
    """Return a column of small and large values whose sums and means fit."""
    digits = precision
    if precision > 28:
        digits = min(precision, 36 - (min(38, scale + 4) - scale))
    units = (0, 1, -7, 10**digits - 1, 10**digits - 1, 3 - 10**digits)
    literals = (f"cast('{unit}E-{scale}' AS decimal({precision},{scale}))" for unit in units)
    return Kind(f"decimal_{precision}_{scale}", Level.SUMMED, tuple(literals))


def _floats(name, *texts):
    kind = name.partition("_")[0]
    return Kind(name, Level.SUMMED, tuple(f"cast('{text}' AS {kind})" for text in texts))


_DECIMALS = [(1, 0), (5, 2), (18, 4), (20, 5), (28, 10), (37, 1), (38, 0), (38, 18), (38, 38)]

_NAIVE = tuple(
    f"timestamp_ntz'{text}'"
    for text in (
        "0001-01-01 00:00:00",
        "1883-11-18 12:03:57.5",
        "2001-01-01 00:04:00",
        "2024-03-10 02:30:00",  # does not exist in New York
        "2024-11-03 01:30:00.000001",  # exists twice in New York
        "9999-12-31 23:59:59.999999",
    )
)
_DATES = tuple(f"date'{day}'" for day in ("0001-01-01", "1582-10-15", "1970-01-01", "9999-12-31"))
_MOMENTS = (-62_135_596_800_000_000, 0, 978_307_440_000_000, 2**63 - 1)
_LONGEST = "interval '106751991 04:00:54.775807' day to second"
_TEXTS = ("''", "'a'", "'Z'", "'ab'", "'\u00e9'", "'\uffee'", "'\U0001f600'")

_EVERY_KIND = [
    Kind("boolean", Level.ORDERED, ("true", "false")),
    Kind("byte", Level.SUMMED, ("-128Y", "127Y", "0Y", "5Y")),
    Kind("short", Level.SUMMED, ("-32768S", "32767S", "12S")),
    Kind("int", Level.SUMMED, ("-2147483648", "2147483647", "17")),
    Kind("long", Level.SUMMED, ("9007199254740993L", "-9007199254740995L", "8L")),
    Kind("long_high", Level.NUMBER, ("9223372036854775807L", "9223372036854775806L", "1L")),
    Kind("long_low", Level.NUMBER, ("-9223372036854775807L - 1L", "-9223372036854775807L")),
    _floats("float", "1.5", "-2.25", "1024", "-1024"),
    _floats("float_edges", "Infinity", "-Infinity", "NaN", "1e-45"),
    _floats("double", "1.5", "-2.25", "1024", "-1024"),
    _floats("double_nan", "NaN", "1.5", "-8"),
    _floats("double_infinite", "Infinity", "1.5"),
    _floats("double_edges", "Infinity", "-Infinity", "NaN", "4.9e-324"),
    _floats("double_zeros", "0.0", "-0.0", "2"),
    *(_decimal(*both) for both in _DECIMALS),
    Kind("decimal_edges", Level.NUMBER, (f"{'9' * 38}BD", f"-{'9' * 38}BD", f"{'9' * 37}8BD")),
    Kind("string", Level.ORDERED, _TEXTS),
    Kind("char", Level.ORDERED, ("'a    '", "'bc   '")),
    Kind("varchar", Level.ORDERED, ("'a'", "'bc'")),
    Kind("binary", Level.ORDERED, ("X''", "X'00'", "X'7F'", "X'80'", "X'FF00'")),
    Kind("date", Level.ORDERED, (*_DATES, "make_date(5000000, 1, 1)")),
    Kind("timestamp", Level.ORDERED, tuple(f"timestamp_micros({at}L)" for at in _MOMENTS)),
    Kind("naive", Level.ORDERED, _NAIVE),
    Kind("day_time", Level.PLAIN, (_LONGEST, "interval '-1 00:00:00.000001' day to second")),
    Kind("hours", Level.PLAIN, ("interval '5' hour", "interval '-7' hour")),
    Kind("void", Level.PLAIN, ("null",)),
    Kind("lower", Level.COUNTED, ("'a' COLLATE UTF8_LCASE", "'A' COLLATE UTF8_LCASE"), "4.0"),
    Kind("array", Level.COUNTED, tuple(f"array({text}, null)" for text in _NAIVE)),
    Kind("struct", Level.COUNTED, tuple(f"struct({text} AS t, 1.5BD AS d)" for text in _NAIVE)),
    Kind("map", Level.COUNTED, tuple(f"map(1, struct({text} AS t))" for text in _NAIVE)),
    Kind("variant", Level.COUNTED, ("parse_json('{\"a\": 1}')", "parse_json('2')"), "4.0"),
    Kind("months", Level.FOREIGN, ("interval '1-2' year to month", "interval '0-1' year to month")),
    Kind("calendar", Level.FOREIGN, ("make_interval(1, 2, 3)",), "4.0"),
]
KINDS = [kind for kind in _EVERY_KIND if kind.since <= pyspark.__version__]
"""The types of this version of Spark."""

NEEDS = {
    sy.Count: Level.COUNTED,
    sy.Sum: Level.SUMMED,
    sy.Mean: Level.NUMBER,
    sy.Min: Level.ORDERED,
    sy.Max: Level.ORDERED,
    sy.Variance: Level.NUMBER,
    sy.CollectSet: Level.ORDERED,
    sy.TopK: Level.ORDERED,
    sy.ApproxDistinct: Level.PLAIN,
    sy.Quantiles: Level.NUMBER,
}
"""The level of columns that each aggregator needs."""

NATIVE = (sy.Count, sy.Sum, sy.Mean, sy.Min, sy.Max)
"""The aggregators whose states Spark merges natively."""

_FUNCTIONS = {
    sy.Count: F.count,
    sy.Sum: F.sum,
    sy.Mean: F.avg,
    sy.Min: F.min,
    sy.Max: F.max,
    sy.Variance: F.var_samp,
    sy.CollectSet: F.collect_set,
}
_RANKS = (0.0, 0.5, 0.99)


def aggregators(kind, among=tuple(NEEDS)):
    """Return the aggregators that accept a column."""
    return [made(each, kind) for each in among if _fits(each, kind)]


def _fits(aggregator, kind):
    if aggregator is sy.Mean and kind.name == "decimal_edges":
        return False  # the mean has fewer digits before its decimal point
    return NEEDS[aggregator] <= kind.level


def made(aggregator, kind):
    """Return an aggregator of a column."""
    settings = {sy.TopK: {"k": 100}, sy.Quantiles: {"ranks": _RANKS}}
    return aggregator(kind.name, **settings.get(aggregator, {}))


def frame_of(rows, level=Level.FOREIGN):
    """Return a frame with columns of all kinds, the key `k`, and one key of each possible kind.

    `rows` has the column `id`. The other keys depend on `k`. One key has a single row, another one
    has only nulls. Zeros of both signs are the same key.
    """
    kinds = [kind for kind in KINDS if kind.level >= level]
    columns = {}
    for kind in kinds:
        places = len(kind.values) + 1
        columns[kind.name] = kind.at(
            f"if(k = 'nothing', -1, pmod(xxhash64(id, '{kind.name}'), {places}))"
        )
        if kind.level >= Level.PLAIN:
            columns[KEY + kind.name] = kind.at(f"pmod(xxhash64(k, '{kind.name}'), {places})")
    columns[f"{KEY}double_zeros"] = "double(if(id % 2 = 0, '0.0', '-0.0'))"
    key = "if(id = 0, 'single', if(id % 5 = 4, 'nothing', string(id % 4)))"
    frame = rows.selectExpr("id", f"{key} AS k")
    frame = frame.selectExpr("*", *(f"{text} AS {name}" for name, text in columns.items()))
    return frame.select(*map(_with_metadata, frame.columns))


def keys_of(frame):
    """Return the names of the key columns."""
    return [name for name in frame.columns if name == "k" or name.startswith(KEY)]


def _with_metadata(name):
    """Return a column with the metadata by which Spark recognizes char and varchar."""
    kind = {"char": "char(5)", "varchar": "varchar(10)"}.get(name.removeprefix(KEY))
    metadata = {"__CHAR_VARCHAR_TYPE_STRING": kind} if kind else {}
    return F.col(name).alias(name, metadata=metadata)


def kinds_of(frame):
    """Return the types of the columns by name."""
    return {field.name: field.dataType for field in frame.schema.fields}


def with_texts(frame):
    """Cast nested columns to text: Spark passes no null structs with non-null fields to Arrow."""
    nested = {"array", "struct", "map", "variant"} & set(frame.columns)
    return frame.withColumns({name: F.col(name).cast("string") for name in nested})


def rows_of(frame, key="k", latest=None):
    """Return the rows of a small frame by key; of several, the row with the largest `latest`."""
    table, found = to_arrow(frame), {}
    columns = {name: _values(table[name]) for name in table.column_names}
    for place in range(table.num_rows):
        row = {name: values[place] for name, values in columns.items()}
        before = found.setdefault(row[key], row)
        assert before is row or latest, f"{row[key]} occurs twice"
        if latest and row[latest] > before[latest]:
            found[row[key]] = row
    return found


def _values(column):
    """Return the values of an Arrow column as Python values that can be compared."""
    return [_comparable(value) for value in column.cast(_numbers(column.type)).to_pylist()]


def _numbers(kind):
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_temporal(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_numbers(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _numbers(field.type)) for field in kind])
    return kind


def _comparable(value):
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((name, _comparable(inner)) for name, inner in value.items())
    return value


def expected(frame):
    """Return the expected results of all aggregators by key, and the types of these results."""
    functions, columns, types = [], kinds_of(frame), {}
    for kind in KINDS:
        for aggregator in aggregators(kind):
            if type(aggregator) in _FUNCTIONS:
                column = _FUNCTIONS[type(aggregator)](kind.name)
                functions.append(column.alias(aggregator.name))
            else:
                types[aggregator.name] = _kind_of(aggregator, columns[kind.name])
    truth = frame.groupBy(*keys_of(frame)).agg(*functions)
    rows = rows_of(truth)
    plain = [kind.name for kind in KINDS if kind.level >= Level.PLAIN]
    values = rows_of(frame.select("id", "k", *plain), "id").values()
    for key, row in rows.items():
        own = [each for each in values if each["k"] == key]
        for kind in KINDS:
            of_kind = [each[kind.name] for each in own if each.get(kind.name) is not None]
            for aggregator in aggregators(kind):
                row[aggregator.name] = _answer(aggregator, of_kind, row.get(aggregator.name))
    return rows, types | kinds_of(truth)


def _kind_of(aggregator, kind):
    """Return the type of a result for which Spark has no function."""
    if isinstance(aggregator, sy.TopK):
        counts = [StructField("count", LongType()), StructField("error", LongType())]
        return ArrayType(StructType([StructField("value", kind), *counts]))
    return ArrayType(DoubleType()) if isinstance(aggregator, sy.Quantiles) else LongType()


def _answer(aggregator, values, theirs):
    """Return the expected result; `theirs` is Spark's result, if it has such a function."""
    if isinstance(aggregator, sy.CollectSet):
        return set(theirs)
    if isinstance(aggregator, sy.TopK):
        return dict(Counter(values))
    if isinstance(aggregator, sy.ApproxDistinct):
        return len(set(values))
    if isinstance(aggregator, sy.Quantiles):
        numbers = sorted(float(value) for value in values if value != "NaN")
        last = len(numbers) - 1
        places = [max(math.ceil(rank * len(numbers)) - 1, 0) for rank in _RANKS]
        return [numbers[min(place, last)] for place in places] if numbers else None
    return theirs


def wrong_types(ours, frame, types):
    """Return the columns with a wrong type, and the keys with wrong metadata."""
    found = kinds_of(ours)
    names = [name for name in found if name in types and found[name] != types[name]]
    changed = [n for n in keys_of(frame) if frame.schema[n].metadata != ours.schema[n].metadata]
    return {name: (found[name], types[name]) for name in names} | dict.fromkeys(changed, "metadata")


def wrong_values(found, truth, among=tuple(NEEDS)):
    """Return the results and keys that differ from the expected ones."""
    wrong = dict.fromkeys(truth.keys() ^ found.keys(), "missing")
    for key in truth.keys() & found.keys():
        row, ours = truth[key], found[key]
        wrong |= {(key, k): ours[k] for k in row if k.startswith(KEY) and ours[k] != row[k]}
        for kind in KINDS:
            for aggregator in aggregators(kind, among):
                name = aggregator.name
                answer = _answer_of_ours(aggregator, ours[name])
                if not _same(aggregator, answer, row[name]):
                    wrong[key, name] = (answer, row[name])
    return wrong


def _answer_of_ours(aggregator, value):
    if isinstance(aggregator, sy.CollectSet):
        assert len(set(value)) == len(value)
        return set(value)
    if isinstance(aggregator, sy.TopK):
        entries = [dict(entry) for entry in value]
        assert {0} >= {entry["error"] for entry in entries}
        counts = [entry["count"] for entry in entries]
        assert sorted(counts, reverse=True) == counts
        return {entry["value"]: entry["count"] for entry in entries}
    if isinstance(aggregator, sy.Quantiles) and value is not None:
        return list(value)
    return value


def _same(aggregator, ours, theirs):
    """Compare two results; doubles from decimals or sums of doubles may differ by rounding."""
    is_rounded = isinstance(aggregator, sy.Mean | sy.Variance) and isinstance(theirs, float)
    if isinstance(aggregator, sy.Quantiles) and aggregator.columns[0].startswith("decimal"):
        is_rounded = theirs is not None
    return ours == (pytest.approx(theirs, rel=1e-12) if is_rounded else theirs)
