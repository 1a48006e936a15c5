"""Read data for the doctor: files, a table, or a sample of a Kafka topic.

The options of the command line enter; a frame leaves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from steelyard.datasets.ragged_rows import first_ragged_row
from steelyard.spark.failures import SparkFailed, kafka_failures, plain_failures
from steelyard.validation import require_whole

SOURCES = ("parquet", "csv", "json", "table", "kafka")

_SUFFIXES = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = (".gz", ".bz2", ".zst")

_PATTERN = re.compile(r"[*?\[{]")

_PIECES = 64
"""Number of pieces, of about equal length, that a topic is divided into.

The sample has the first messages of each piece.
"""

_NO_CONNECTOR = re.compile(r"Class \S*FileSystem\S* not found|No FileSystem for scheme")
_OTHER_FORMAT = re.compile(r"footer|not a Parquet file|UNABLE_TO_INFER_SCHEMA")


@dataclass(frozen=True)
class Data:
    """The location and the format of the data.

    Args:
        kind: One of `SOURCES`.
        path: The file, the folder or the name of the table.
        servers: The bootstrap servers of Kafka.
        topic: The Kafka topic.
        messages: The number of messages to sample from a topic.
        separator: The separator of the fields of a csv file.
        multiline: Whether a csv field may contain line breaks.
        is_guess: Whether `kind` is a guess, because neither the user nor a file name gives it.
        options: Further options of Spark's source, which may hold secrets.

    Raises:
        ValueError: `kind` is unknown, or an argument that it needs is missing.
    """

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    messages: int = 1_000_000
    separator: str = ","
    multiline: bool = False
    is_guess: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in SOURCES:
            raise ValueError(f"source must be one of {', '.join(SOURCES)}, got {self.kind!r}")
        require_whole("messages", self.messages, least=1)
        if self.kind == "kafka" and not (self.servers and self.topic):
            raise ValueError("source kafka needs --servers and --topic")
        if self.kind == "table" and not self.path:
            raise ValueError("source table needs the name of a table")
        if self.kind in ("parquet", "csv", "json") and not self.path:
            raise ValueError(f"source {self.kind} needs the file, or the folder of files, to read")

    @property
    def name(self) -> str:
        """The name of the data in the doctor's output."""
        if self.kind == "kafka":
            return f"topic {self.topic}"
        assert self.path is not None
        return self.path if self.kind == "table" else PurePosixPath(self.path).name

    @property
    def is_sample(self) -> bool:
        """Whether the rows may be only a sample of the data."""
        return self.kind == "kafka"

    def require_there(self) -> None:
        """Refuse a local file that does not exist; Spark resolves patterns and remote paths."""
        if self.kind in ("table", "kafka"):
            return
        assert self.path is not None
        path = Path(self.path)
        if ":/" in self.path or (_PATTERN.search(self.path) and not path.exists()):
            return
        if not path.exists():
            raise ValueError(f"data: there is no file or folder {self.path!r}")
        if path.is_dir() and not any(map(_is_data, path.rglob("*"))):
            raise ValueError(f"data: there are no files in {self.path!r}")

    def frame(self, spark: SparkSession) -> DataFrame:
        r"""Return the rows; a line that cannot be parsed is an error, never a null.

        >>> _ = (folder / "visits.csv").write_text("page,visit\nhome,1\nhome,2\n")
        >>> Data("csv", str(folder / "visits.csv")).frame(spark).count()
        2
        """
        if self.kind == "kafka":
            return self._sample(spark)
        assert self.path is not None
        with self.explained_failures():
            if self.kind == "table":
                return _resolved(spark.read.options(**self.options).table(self.path))
            reader = spark.read.format(self.kind)
            if self.kind != "parquet":
                reader = reader.option("mode", "FAILFAST")
            if self.kind == "csv":
                reader = reader.option("header", True).option("sep", self.separator)
                reader = reader.option("multiLine", self.multiline)
                # With pruned columns Spark does not notice a line with too few fields.
                reader = reader.option("columnPruning", False)
            frame = _resolved(reader.options(**self.options).load(self.path))
        if not frame.columns:
            raise ValueError(f"data: {self.path!r} has no columns, because it is empty")
        return frame

    def _first_ragged_row(self) -> str | None:
        """Return where the first row with too few or too many fields is, if the files are here."""
        path = Path(self.path or "")
        if self.kind != "csv" or not path.exists():
            return None
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        return first_ragged_row(filter(_is_data, files), self.separator, multiline=self.multiline)

    @contextmanager
    def explained_failures(self, what: str = "cannot be read") -> Iterator[None]:
        """Name the data that Spark cannot read, and the remedy or the line where one is known."""
        try:
            with plain_failures(f"data: {(self.path or self.name)!r} {what}"):
                yield
        except SparkFailed as error:
            ragged = self._first_ragged_row()
            if ragged is not None:
                raise SparkFailed(f"data: {ragged}") from error.__cause__
            remedy = ""
            if _NO_CONNECTOR.search(str(error)):
                remedy = "; Spark has no connector for this file system: pass its jars with --jars"
            elif self.is_guess and _OTHER_FORMAT.search(str(error)):
                remedy = f"; the format {self.kind} is a guess: pass the format with --source"
            sentence = str(error).rstrip(".") + remedy if remedy else str(error)
            raise SparkFailed(sentence) from error.__cause__

    def _sample(self, spark: SparkSession) -> DataFrame:
        """Return the first messages of each of many pieces of the topic.

        Partitions with hot keys are longer than others, and the same number of messages from each
        partition would hide the hot keys. A longer partition therefore has more pieces. The sample
        is cached, so that every step of the examination reads the same messages.
        """
        assert self.servers is not None
        assert self.topic is not None
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        reader = reader.option("minPartitions", _PIECES).options(**self.options)
        with kafka_failures("Kafka cannot be read"):
            rows = _resolved(reader.load())
        rows = rows.select(
            F.col("key").cast("string"), F.col("value").cast("string"), "partition", "timestamp"
        )
        most = ceil(self.messages / _PIECES)

        def take(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            left = most
            for batch in batches:
                yield batch.slice(0, left)
                left -= min(left, batch.num_rows)
                if not left:
                    return

        return rows.mapInArrow(take, rows.schema).persist()


def kind_of(path: str) -> str | None:
    """Return the format that the suffix of a file, or of a file in a folder, names, or None.

    >>> kind_of("visits.csv.gz"), kind_of("s3://bucket/visits")
    ('csv', None)
    """
    known = _by_suffix(path)
    if known is None and Path(path).is_dir():
        inside = sorted(file.name for file in Path(path).iterdir())
        known = next(filter(None, map(_by_suffix, inside)), None)
    return known


def _is_data(file: Path) -> bool:
    """Return whether Spark would read a file: not if its name begins with a dot or underscore."""
    return file.is_file() and not file.name.startswith((".", "_"))


def _resolved(frame: DataFrame) -> DataFrame:
    """Resolve the schema of a frame now, so that Spark Connect raises its errors here."""
    _ = frame.schema
    return frame


def _by_suffix(path: str) -> str | None:
    name = PurePosixPath(path.rstrip("/"))
    if name.suffix.lower() in _COMPRESSED:
        name = name.with_suffix("")
    return _SUFFIXES.get(name.suffix.lower())
