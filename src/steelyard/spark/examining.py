"""Count the keys of a frame, in one pass, without collecting them.

A frame and its key enter; the counts that `steelyard.doctor` needs leave: the number of keys for
each number of rows, the hottest keys, and the rows of each bucket and of each Spark partition.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructType,
)

from steelyard.doctor.diagnosis import diagnose
from steelyard.doctor.estimates import NO_ESTIMATES, Estimates
from steelyard.doctor.examination import Examination
from steelyard.doctor.job import Job
from steelyard.doctor.key_counts import BUCKETS, TOP, KeyCounts, TopKey, counted_partitions
from steelyard.doctor.periods import OverTime, over_time
from steelyard.doctor.strategies import compared
from steelyard.doctor.work import JOIN, KindOfWork
from steelyard.reported_keys import ReportedKeys
from steelyard.spark.columns import HIDDEN, Key, named, require_frame, seconds_of
from steelyard.spark.key_names import decoded
from steelyard.spark.resolved_columns import ResolvedColumns, column_code, column_named
from steelyard.spark.versions.arrow import to_arrow
from steelyard.spark.versions.interfaces import tried_cast

Watch = Callable[[str], None]

_COUNT, _TIME = f"{HIDDEN}count", f"{HIDDEN}time"

_BY_COUNT, _BY_BUCKET, _HOTTEST, _BY_PARTITION = range(4)
"""The kinds of rows in one result: sums by some numbers, and the hottest keys.

Sums by partition have one kind for each number of partitions, from `_BY_PARTITION` on.
"""

_SAMPLED_ROWS = 100_000
"""Approximate number of rows that are sampled to find changes over time."""

_LONGEST_TEXT = 1000
"""Number of characters that are fetched of each key column."""

_MEASURED_ROWS = 10_000
"""Number of rows of which the bytes are measured."""

_COMPRESSED = 0.6
"""Bytes of a shuffled row after compression, as a fraction of the bytes before."""


def examine(
    frame: DataFrame,
    key: str | Column | Sequence[str | Column],
    workers: int,
    *,
    capacities: Sequence[float] | None = None,
    work: str = "python",
    estimates: Estimates = NO_ESTIMATES,
    time: str | None = None,
    source: str = "",
    is_sample: bool = False,
    report_keys: str | None = None,
    watch: Watch = lambda step: None,
) -> Examination:
    """Measure the skew of a frame by a key, estimate its cost and give advice.

    The rows are counted exactly, in one pass over the key columns; times are read from a sample.
    A null is a key.

    Args:
        frame: The rows; not a stream.
        key: A column, or several: names, fields such as "user.id", or deterministic expressions
            such as `F.lower("page")`.
        workers: The number of tasks that share the work.
        capacities: The speed of each worker, if they differ.
        work: The kind of work on the rows of a key: python, aggregate, join, write or stream.
        estimates: The time and the bytes of a row and the size of the other table of a join, as
            far as you know them.
        time: A column of times; with it the doctor reports whether the hot keys change.
        source: The name of the data in the report.
        is_sample: Whether the rows are a sample; the report mentions it.
        report_keys: How the report names keys: "plain", "hashed" or "hidden". None: as the
            environment variable STEELYARD_REPORT_KEYS says, by default "plain".
        watch: Called with the name of each of `steps` before it starts.

    Returns:
        The numbers, with `describe()` for people and `to_json()` for programs.

    Raises:
        TypeError: `frame` is not a Spark DataFrame, or `key` or `time` has a wrong type.
        ValueError: The frame, a column or a setting cannot be examined.

    >>> rows = spark.range(10_000).selectExpr("if(id % 2 = 0, 'hot', string(id)) AS page", "id")
    >>> found = examine(rows, "page", workers=8)
    >>> found.messages, found.keys, found.p1, found.skewed
    (10000, 5001, 0.5, 'strong')
    >>> found.advice.code
    'sy.group_by(df, "page", workers=8).map_arrow(function, schema)'
    """
    reported = ReportedKeys.of(report_keys)
    fields = _fields(frame, (key,) if isinstance(key, str | Column) else tuple(key), time)
    speeds = None if capacities is None else tuple(map(float, capacities))
    job = Job(KindOfWork.named(work), fields.key, workers, speeds, fields.code, estimates)
    watch("counting")
    if job.work == JOIN and estimates.row_bytes is None:
        measured = replace(estimates, row_bytes=_row_bytes(frame))
        job = replace(job, estimates=measured)
    counts = key_counts(fields.flat, fields.key, workers).named_by(reported.shown_columns)
    drift = None
    if time is not None:
        watch("reading times")
        drift = _over_time(fields, counts.messages, workers, reported)
    return diagnose(counts, job, source=source, over_time=drift, is_sample=is_sample, watch=watch)


def steps(time: str | None, work: str = "python") -> int:
    """Return the number of steps that `examine` reports."""
    return 1 + (time is not None) + len(compared(work))


def key_counts(frame: DataFrame, names: tuple[str, ...], workers: int) -> KeyCounts:
    """Count the rows of each key, and aggregate these counts; Spark reads the frame once.

    >>> rows = spark.range(7).selectExpr("nullif(id % 4, 3) AS key")
    >>> counts = key_counts(rows, ("key",), workers=2)
    >>> counts.values, counts.keys_with
    (array([2, 1]), array([3, 1]))
    """
    columns = [named(name) for name in names]
    by_key = frame.groupBy(*columns).agg(F.count(F.lit(1)).alias(_COUNT))
    # Two branches of one query: both read the counts by key from the same shuffle.
    table = to_arrow(_sums(by_key, names, workers).unionByName(_hottest(by_key, names)))
    numbers = counted_partitions(workers)
    by_count, by_bucket, top, *by_partition = (
        table.filter(pc.equal(table["kind"], kind)) for kind in range(_BY_PARTITION + len(numbers))
    )
    falling = by_count.sort_by([("number", "descending")])
    hottest = sorted(top.to_pylist(), key=lambda row: -row["messages"])
    return KeyCounts(
        values=_numbers(falling, "number"),
        keys_with=_numbers(falling, "keys"),
        top=tuple(TopKey(decoded(row["name"]), row["messages"], row["number"]) for row in hottest),
        by_bucket=_placed(by_bucket, "messages", BUCKETS),
        keys_by_bucket=_placed(by_bucket, "keys", BUCKETS),
        by_partition={
            number: _placed(found, "messages", number)
            for number, found in zip(numbers, by_partition, strict=True)
        },
    )


def _sums(by_key: DataFrame, names: tuple[str, ...], workers: int) -> DataFrame:
    """Sum messages and keys by count, by bucket and by Spark's partitions."""
    numbers = {
        _BY_COUNT: F.col(_COUNT),
        _BY_BUCKET: Key(names, BUCKETS).bucket(),
    }
    for kind, partitions in enumerate(counted_partitions(workers), _BY_PARTITION):
        # The partition that Spark's own repartition gives to a key.
        numbers[kind] = F.pmod(F.hash(*map(named, names)), F.lit(partitions))
    groups = (
        F.struct(F.lit(kind).alias("kind"), number.cast("long").alias("number"))
        for kind, number in numbers.items()
    )
    # Every key is in a group of each kind. `groupingSets` would do the same, from Spark 4.0 on.
    placed = by_key.select(F.inline(F.array(*groups)), _COUNT)
    sums = placed.groupBy("kind", "number").agg(
        F.sum(_COUNT).alias("messages"), F.count(F.lit(1)).alias("keys")
    )
    return sums.withColumn("name", F.lit(None).cast("array<binary>"))


def _hottest(by_key: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Select the hottest keys, with the columns of `_sums`."""
    top = by_key.orderBy(F.col(_COUNT).desc(), *map(named, names)).limit(TOP)
    return top.select(
        F.lit(_HOTTEST).alias("kind"),
        Key(names, BUCKETS).hashed().alias("number"),
        F.col(_COUNT).alias("messages"),
        F.lit(1).cast("long").alias("keys"),
        _texts(names).alias("name"),
    )


def _texts(names: tuple[str, ...]) -> Column:
    """Return the columns of a key as an array of texts; they may be invalid UTF-8, so as bytes."""
    texts = (F.substring(named(name).cast("string"), 1, _LONGEST_TEXT) for name in names)
    return F.array(*(text.cast("binary") for text in texts))


def _row_bytes(frame: DataFrame) -> float | None:
    """Estimate the bytes of a row in a shuffle, from the first rows; None if there are none.

    A row has eight bytes for its nulls and eight for each column; texts and other values without a
    fixed size come in addition, in multiples of eight. Spark compresses these bytes.
    """
    lengths = [_length(field.name, field.dataType) for field in frame.schema.fields]
    row = sum((length for length in lengths if length is not None), F.lit(8 + 8 * len(lengths)))
    mean = frame.limit(_MEASURED_ROWS).agg(F.avg(row).alias("bytes")).first()
    return None if mean is None or mean["bytes"] is None else _COMPRESSED * mean["bytes"]


def _length(name: str, kind: DataType) -> Column | None:
    """Return the bytes of a value beside its eight bytes in the row; None if there are none."""
    if isinstance(kind, ArrayType | MapType | StructType):
        text = named(name).cast("string")
    elif isinstance(kind, BinaryType | StringType):
        text = named(name)
    else:
        return None
    return F.coalesce(F.ceil(F.octet_length(text) / 8) * 8, F.lit(0))


@dataclass(frozen=True)
class _Fields:
    """A frame of the key columns and the time in seconds; the key columns have their texts."""

    flat: DataFrame
    key: tuple[str, ...]
    code: Mapping[str, str]
    """The code of key columns that the frame of the user lacks."""


def _fields(frame: DataFrame, key: tuple[str | Column, ...], time: str | None) -> _Fields:
    require_frame("frame", frame)
    if frame.isStreaming:
        raise ValueError(
            "frame is a stream, which has no end; examine the files or the topic that it reads"
        )
    found = ResolvedColumns.of(frame, key)
    names = found.texts or found.results
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"key: a column is named twice in {', '.join(names)}")
    renamed = zip(found.key, names, strict=True)
    chosen = [named(column).alias(name) for column, name in renamed]
    flat = found.wide.select(*chosen)
    code = {
        name: column_code(found, column)
        for column, name in zip(found.key, names, strict=True)
        if column in found.computed
    }
    if time is not None:
        if not isinstance(time, str):
            raise TypeError(f"time must be column names, got {time!r}")
        alone = frame.select(column_named(frame, "time", time).alias(_TIME))
        flat = found.wide.select(*chosen, column_named(frame, "time", time).alias(_TIME))
        flat = flat.withColumn(_TIME, _seconds(alone, time))
    return _Fields(flat, names, code)


def _seconds(alone: DataFrame, time: str) -> Column:
    seconds = seconds_of(alone, _TIME)
    if seconds is not None:
        return seconds
    kind = alone.schema[_TIME].dataType
    if isinstance(kind, DateType):
        return F.unix_date(named(_TIME)).cast("double") * 86_400
    if isinstance(kind, StringType):
        number = tried_cast(_TIME, "double")
        return F.coalesce(number, F.try_to_timestamp(named(_TIME)).cast("double"))
    found = kind.simpleString()
    raise ValueError(f"time: column {time!r} must hold times, dates or numbers, got {found}")


def _over_time(fields: _Fields, messages: int, workers: int, reported: ReportedKeys) -> OverTime:
    rows = fields.flat
    if messages > _SAMPLED_ROWS:
        rows = rows.sample(fraction=_SAMPLED_ROWS / messages, seed=0)
    key = Key(fields.key, BUCKETS)
    time, name = named(_TIME).alias("time"), _texts(fields.key).alias("name")
    table = to_arrow(rows.select(time, key.hashed().alias("hash"), name))
    _, first, keys = np.unique(_numbers(table, "hash"), return_index=True, return_inverse=True)
    texts = table["name"].take(pa.array(first)).to_pylist()
    names = [reported.shown_columns(decoded(text)) for text in texts]
    times = table["time"].to_numpy(zero_copy_only=False).astype(np.float64)
    return over_time(times, keys, names, workers)


def _numbers(table: pa.Table, column: str) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.asarray(table[column].to_numpy(), np.int64)


def _placed(
    table: pa.Table, column: str, size: int
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    numbers = np.zeros(size, np.int64)
    numbers[_numbers(table, "number")] = _numbers(table, column)
    return numbers
