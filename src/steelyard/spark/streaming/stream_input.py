"""The source of `steelyard stream`: settings enter; a streaming DataFrame and its key leave."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from steelyard.spark.failures import kafka_failures
from steelyard.spark.resolved_columns import of_command_line

INPUTS = ("kafka", "parquet", "json", "text", "rate")
"""The kinds of sources."""

FILE_INPUTS = ("parquet", "json", "text")
"""The kinds of sources that are files in a folder."""


@dataclass(frozen=True)
class StreamInput:
    """The settings of a source.

    Args:
        kind: One of `INPUTS`.
        path: The folder of the files, for `FILE_INPUTS`.
        servers: Kafka's bootstrap servers.
        topic: Kafka's topic.
        rate: Rows per second, for the source `rate`.
        files_per_batch: The largest number of files in a micro-batch.
        options: Further options of Spark's source, which may hold secrets.

    Raises:
        ValueError: The kind is unknown, or one of its settings is missing.
    """

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    rate: int = 1000
    files_per_batch: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in INPUTS:
            raise ValueError(f"source must be one of {', '.join(INPUTS)}, got {self.kind!r}")
        if self.kind in FILE_INPUTS and not self.path:
            raise ValueError(f"source {self.kind} needs --path, the folder of the files")
        if self.kind == "kafka" and not (self.servers and self.topic):
            raise ValueError("source kafka needs --servers and --topic")

    def frame(self, spark: SparkSession, key: str) -> tuple[DataFrame, str | Column]:
        """Return the stream and its key: a name, or an expression that results call `key`.

        Lines of text have their words in `word`; messages of Kafka have text for a key and a value.
        """
        with kafka_failures(f"source {self.kind}"):
            frame = self._read(spark)
        found = of_command_line(frame, key)
        return frame, found if isinstance(found, str) else found.alias("key")

    def recent(self, spark: SparkSession, seconds: float = 60.0) -> DataFrame:
        """Return the messages of the topic in the last seconds, as a batch."""
        since = round((time.time() - seconds) * 1000)
        reader = spark.read.format(self.kind).option("startingTimestamp", since)
        reader = reader.option("startingOffsetsByTimestampStrategy", "latest")
        with kafka_failures(f"source {self.kind}"):
            return _with_text(reader.options(**self._topic_options).load())

    def _read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format(self.kind)
        if self.kind == "rate":
            return reader.option("rowsPerSecond", self.rate).options(**self.options).load()
        if self.kind == "kafka":
            return self._read_topic(reader)
        if self.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.files_per_batch)
        reader = reader.options(**self.options)
        if self.kind == "text":
            return self._read_words(reader)
        return self._read_rows(spark, reader)

    def _read_topic(self, reader: DataStreamReader) -> DataFrame:
        reader = reader.option("startingOffsets", "earliest")
        return _with_text(reader.options(**self._topic_options).load())

    @property
    def _topic_options(self) -> dict[str, str]:
        assert self.servers is not None
        assert self.topic is not None
        own = {"kafka.bootstrap.servers": self.servers, "subscribe": self.topic}
        return own | dict(self.options)

    def _read_words(self, reader: DataStreamReader) -> DataFrame:
        words = F.explode(F.split(F.lower("value"), r"\W+")).alias("word")
        return reader.load(self.path).select("*", words).where("word <> ''")

    def _read_rows(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        try:
            schema = spark.read.format(self.kind).options(**self.options).load(self.path).schema
        except AnalysisException as error:
            raise ValueError(
                f"there are no files in {self.path!r} from which to read the columns; put at "
                "least one file there first"
            ) from error
        return reader.schema(schema).load(self.path)


def _with_text(messages: DataFrame) -> DataFrame:
    """Return messages of Kafka with text for a key and a value."""
    return messages.withColumns({name: F.col(name).cast("string") for name in ("key", "value")})
