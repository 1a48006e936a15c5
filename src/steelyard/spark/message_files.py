"""Load keyed streams into Spark.

A path that Spark can read enters; a frame of messages (`time` in seconds, `key`) leaves, with a
report on its lines. What is a message, and what is malformed, is decided by the parsers of
`steelyard.datasets.formats`.
"""

import os
import sys
from collections.abc import Callable, Iterable
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

_Batches = Iterable[pa.RecordBatch]
_TALLIED = "time double, key string, lines bigint, malformed bigint"


@dataclass(frozen=True)
class LoadReport:
    """How many lines, or rows of a table, were read, and how many of them were malformed."""

    lines: int
    malformed: int


@dataclass(frozen=True)
class LoadedFrame:
    """Messages (`time` as double, `key`), and what was seen while they were read."""

    frame: DataFrame
    counted: Observed

    def report(self, patience: float = 10.0) -> LoadReport:
        """What the first action on the frame has read.

        Spark counts while an action runs, and keeps the counts of the first: let that be one
        that reads all lines. Of an action that failed it keeps what was read until then. Without
        an action there is nothing to report, and after `patience` seconds a RuntimeError says so.
        """
        seen = self.counted.within(patience)
        if seen is None:
            raise RuntimeError("nothing has been read yet: run an action on the frame first")
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
    r"""The messages of a file, or of all files below a folder, as a frame.

    The settings are those of `steelyard.datasets.loading.load`. Files are gzip if their names
    end in `.gz`. With `on_malformed="stop"` the action that meets a malformed line fails, with a
    sentence about it in the error's text.

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
        raise ValueError(f"{path} has no header line")
    header = bytes(first["line"]).removesuffix(b"\r")
    try:
        rows = CsvRows.below(header, key, time)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return _from_lines(lines, rows, stop, header)


def _text(spark: SparkSession, path: str) -> DataFrame:
    """Lines as bytes, each with its file and, in the piece that begins the file, a mark of it."""
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
    """From batches of lines to their messages; the tally of every batch follows as one row."""

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
    """The lines that are no headers: a file's header is the line where its mark first appears."""
    last = np.zeros(1, np.int64)
    for batch in batches:
        beginnings = np.concatenate((last, batch.column("beginning").to_numpy()))
        is_header = (beginnings[1:] != 0) & (beginnings[1:] != beginnings[:-1])
        for line in batch.filter(pa.array(is_header)).to_pylist():
            if line["line"].removesuffix(b"\r") != header:
                there = f"{line['file']} has another header than the first file"
                raise ValueError(f"{there}: load them one by one")
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
