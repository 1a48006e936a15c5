"""Load keyed streams into Spark.

A path that Spark can read enters; a frame of messages (`time` in seconds, `key`) leaves, with a
report on its lines. The parsers of `steelyard.datasets.formats` decide which lines are messages
and which are malformed.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.datasets.formats import (
    CsvRows,
    LineFormat,
    TableFormat,
    in_short,
    require_columns,
)
from steelyard.datasets.loading import (
    GOOD_TIME,
    MalformedInput,
    OnMalformed,
    checked_format,
    complaint,
)
from steelyard.spark.columns import named, seconds_of
from steelyard.spark.observed_counts import Observed

_Batches = Iterator[pa.RecordBatch]
_TALLIED = "time double, key string, lines bigint, malformed bigint"


@dataclass(frozen=True)
class LoadReport:
    """The number of lines, or rows of a table, that were read, and how many were malformed."""

    lines: int
    malformed: int


@dataclass(frozen=True)
class LoadedFrame:
    """Messages (`time` as double, `key`), and the counts of the lines that were read."""

    frame: DataFrame
    counted: Observed

    def report(self, patience: float = 10.0) -> LoadReport:
        """Return the line counts of the first action on the frame.

        Spark counts lines during an action, and keeps the counts of the first action only: run
        an action that reads all lines first. If that action fails, the counts are those up to the
        failure.

        Args:
            patience: Seconds to wait for the counts.

        Raises:
            RuntimeError: No action has run on the frame within `patience` seconds.
        """
        seen = self.counted.within(patience)
        if seen is None:
            raise RuntimeError("no lines have been read yet; run an action on the frame first")
        return LoadReport(seen["lines"], seen["malformed"])


def load(
    spark: SparkSession,
    path: str | os.PathLike[str],
    format: str,  # noqa: A002
    *,
    key: str | None = None,
    time: str | None = None,
    on_malformed: OnMalformed = "stop",
) -> LoadedFrame:
    r"""Return the messages of a file, or of all files below a folder, as a frame.

    The settings are those of `steelyard.datasets.loading.load`. A file is read as gzip if its name
    ends in `.gz`.

    Args:
        spark: The session.
        path: A file or a folder that Spark can read.
        format: "wikibench", "words", "csv" or "parquet".
        key: The column of the keys; only for csv and parquet.
        time: The column of the times, for csv and parquet; without it all times are null.
        on_malformed: With "stop", an action that reads a malformed line fails, and the error names
            the line. With "skip", malformed lines are left out and counted.

    Returns:
        The frame of messages, and the counts of its lines after the first action.

    Raises:
        FileNotFoundError: The folder has no files.
        ValueError: A setting does not fit the format, or a column is missing.

    >>> _ = (folder / "texts.tsv").write_text("1\tto be\nlater\tor not\n")
    >>> loaded = load(spark, folder, "words", on_malformed="skip")
    >>> loaded.frame.collect()
    [Row(time=1.0, key='to'), Row(time=1.0, key='be')]
    >>> loaded.report()
    LoadReport(lines=2, malformed=1)
    """
    wanted = checked_format(format, key, time, on_malformed)
    path = os.fspath(path)
    stop = on_malformed == "stop"
    if not isinstance(wanted, TableFormat):
        return _from_lines(_text(spark, path), wanted, stop)
    assert key is not None
    if wanted.name == "parquet":
        return _from_parquet(spark, path, key, time, stop)
    lines = _text(spark, path)
    first = lines.filter("beginning != 0").select("line").first()
    if first is None:
        raise ValueError(f"{path} has no header line, so it has no columns")
    header = bytes(first["line"]).removesuffix(b"\r")
    try:
        rows = CsvRows.below(header, key, time)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return _from_lines(lines, rows, stop, header)


def _text(spark: SparkSession, path: str) -> DataFrame:
    """Return lines as bytes, each with its file and `beginning`.

    `beginning` is a hash of the file in the split that begins the file, and 0 in other splits.
    """
    text = spark.read.text(path, lineSep="\n", recursiveFileLookup=True)
    if not text.inputFiles():
        raise FileNotFoundError(f"the folder {path!r} holds no files")
    file = F.col("_metadata.file_path")
    begins = F.col("_metadata.file_block_start") == 0
    return text.select(
        F.col("value").cast("binary").alias("line"),
        file.alias("file"),
        F.when(begins, F.xxhash64(file)).otherwise(0).alias("beginning"),
    )


def _from_lines(
    lines: DataFrame, line_format: LineFormat, stop: bool, header: bytes | None = None
) -> LoadedFrame:
    if header is not None:
        needed = ["line", "file", "beginning"]
    else:
        needed = ["line", "file"] if stop else ["line"]
    counted = Observed()
    frame = (
        lines.select(*needed)
        .mapInArrow(_parser(line_format, stop, header), _TALLIED)
        .observe(
            counted.observation,
            F.coalesce(F.sum("lines"), F.lit(0)).alias("lines"),
            F.coalesce(F.sum("malformed"), F.lit(0)).alias("malformed"),
        )
        .filter(F.col("lines").isNull())
        .select("time", "key")
    )
    return LoadedFrame(frame, counted)


def _parser(
    line_format: LineFormat, stop: bool, header: bytes | None
) -> Callable[[_Batches], _Batches]:
    """Return a parser that yields the messages of each batch, then one row with its line counts."""

    def parse(batches: _Batches) -> _Batches:
        for batch in batches if header is None else _below_headers(batches, header):
            parsed = line_format.parse(batch.column("line"))
            if stop and parsed.first_malformed is not None:
                line = batch.slice(parsed.first_malformed, 1).to_pylist()[0]
                where = f"a line of {line['file']}"
                raise MalformedInput(complaint(where, in_short(line["line"]), line_format.shape))
            tally = {"lines": batch.num_rows - parsed.blank, "malformed": parsed.malformed}
            rows = [parsed.messages, pa.Table.from_pylist([tally])]
            yield from pa.concat_tables(rows, promote_options="default").to_batches()

    return parse


def _below_headers(batches: _Batches, header: bytes) -> _Batches:
    """Drop the header of each file: the first line with the file's `beginning`."""
    last = np.zeros(1, np.int64)
    for batch in batches:
        beginnings = np.concatenate((last, batch.column("beginning").to_numpy()))
        is_header = (beginnings[1:] != 0) & (beginnings[1:] != beginnings[:-1])
        for line in batch.filter(pa.array(is_header)).to_pylist():
            if line["line"].removesuffix(b"\r") != header:
                raise ValueError(
                    f"{line['file']} has another header than the first file; load the files one "
                    "by one"
                )
        last = beginnings[-1:]
        yield batch.filter(pa.array(~is_header))


def _from_parquet(
    spark: SparkSession, path: str, key: str, time: str | None, stop: bool
) -> LoadedFrame:
    rows = spark.read.parquet(path, recursiveFileLookup=True)
    try:
        require_columns(rows.columns, key, time)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    seconds, good = F.lit(None).cast("double"), F.lit(True)
    if time is not None:
        seconds = _seconds(rows, path, time)
        good = F.coalesce(seconds.between(0.0, sys.float_info.max), F.lit(False))
        if stop:
            value = F.coalesce(named(time).cast("string"), F.lit("None"))
            a_row_of, is_malformed, remedy = complaint("a row of \0", "'\0'", GOOD_TIME).split("\0")
            sentence = F.concat(
                F.lit(a_row_of),
                F.col("_metadata.file_path"),
                F.lit(is_malformed),
                value,
                F.lit(remedy),
            )
            rows = rows.filter(F.when(good, F.lit(True)).otherwise(F.raise_error(sentence)))
    counted = Observed()
    frame = (
        rows.select(seconds.alias("time"), named(key).alias("key"), good.alias("good"))
        .observe(
            counted.observation,
            F.count(F.lit(1)).alias("lines"),
            F.count_if(~F.col("good")).alias("malformed"),
        )
        .filter("good")
        .select("time", "key")
    )
    return LoadedFrame(frame, counted)


def _seconds(rows: DataFrame, path: str, time: str) -> Column:
    seconds = seconds_of(rows, time)
    if seconds is None:
        found = rows.schema[time].dataType.simpleString()
        raise ValueError(f"{path}: {time!r} must hold numbers or timestamps, got {found}")
    return seconds
