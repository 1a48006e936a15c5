"""The main job from the command line: a stream in, results out, and one place that stops it.

Settings enter; a running query leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from steelyard.spark.failures import failures_told

Running = StreamingQuery
"""What commands watch and stop."""

SOURCES = ("kafka", "parquet", "json", "text", "rate")
SINKS = ("console", "parquet", "kafka")


@dataclass(frozen=True)
class Source:
    """Where messages come from."""

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    rate: int = 1000
    files_per_batch: int | None = None
    from_start: bool = True

    def __post_init__(self) -> None:
        _require_known("source", self.kind, SOURCES)
        if self.kind in ("parquet", "json", "text") and not self.path:
            raise ValueError(f"source {self.kind} needs --path, the folder of the files")
        if self.kind == "kafka" and not (self.servers and self.topic):
            raise ValueError("source kafka needs --servers and --topic")

    def frame(self, spark: SparkSession, key: str) -> tuple[DataFrame, str]:
        """The stream and the name of its key: a column of its own, or one for an expression.

        The latter is `key`, or longer where the stream has such a column. Lines of text have their
        words in `word`; messages of Kafka have text for a key and a value.
        """
        with failures_told(f"source {self.kind}"):
            frame = self._read(spark)
        if key in frame.columns:
            return frame, key
        name = "key"
        while name in frame.columns:
            name += "_"
        try:
            return frame.withColumn(name, F.expr(key)), name
        except Exception as error:
            known = ", ".join(frame.columns)
            raise ValueError(
                f"key: {key!r} is neither a column nor an expression; the columns are {known}"
            ) from error

    def _read(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format(self.kind)
        if self.kind == "rate":
            return reader.option("rowsPerSecond", self.rate).load()
        if self.kind == "kafka":
            assert self.servers is not None
            assert self.topic is not None
            reader = reader.option("kafka.bootstrap.servers", self.servers)
            reader = reader.option("subscribe", self.topic)
            reader = reader.option("startingOffsets", "earliest" if self.from_start else "latest")
            frame = reader.load()
            text = {name: F.col(name).cast("string") for name in ("key", "value")}
            return frame.withColumns(text)
        assert self.path is not None
        if self.kind != "text":
            try:
                schema = spark.read.format(self.kind).load(self.path).schema
            except AnalysisException as error:
                raise ValueError(
                    f"there are no files in {self.path!r} to tell the columns by"
                ) from error
            reader = reader.schema(schema)
        if self.files_per_batch is not None:
            reader = reader.option("maxFilesPerTrigger", self.files_per_batch)
        frame = reader.load(self.path)
        if self.kind == "text":
            words = F.explode(F.split(F.lower("value"), r"\W+")).alias("word")
            frame = frame.select("*", words).where("word <> ''")
        return frame


@dataclass(frozen=True)
class Sink:
    """Where results go: the newest result of a key counts, results come again as they change."""

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        _require_known("sink", self.kind, SINKS)
        if self.kind == "parquet" and not self.path:
            raise ValueError("sink parquet needs --out, the folder to write to")
        if self.kind == "kafka" and not (self.servers and self.topic):
            raise ValueError("sink kafka needs --out-servers (or --servers) and --out-topic")

    def require_room(self, checkpoint: str | None) -> None:
        """Refuse to start from nothing where there are results already."""
        if checkpoint is None and self.path and any(Path(self.path).glob("batch=*")):
            raise ValueError(
                f"{self.path!r} has results already, of which this run would replace some: give "
                "the --checkpoint that they were made with, or another --out"
            )

    def start(
        self,
        results: DataFrame,
        key: str,
        checkpoint: str,
        *,
        once: bool,
        show: Callable[[DataFrame], None],
    ) -> StreamingQuery:
        """Run the query; `show` gets the results of every micro-batch if they go to the console."""
        with failures_told(f"sink {self.kind}"):
            return self._started(results, key, checkpoint, once, show)

    def _started(
        self,
        results: DataFrame,
        key: str,
        checkpoint: str,
        once: bool,
        show: Callable[[DataFrame], None],
    ) -> StreamingQuery:
        writer = results.writeStream.outputMode("update").option("checkpointLocation", checkpoint)
        if once:
            writer = writer.trigger(availableNow=True)
        if self.kind == "kafka":
            assert self.servers is not None
            assert self.topic is not None
            message = results.select(
                results[f"`{key}`"].cast("string").alias("key"),
                F.to_json(F.struct("*")).alias("value"),
            )
            writer = message.writeStream.outputMode("update")
            writer = writer.option("checkpointLocation", checkpoint).format("kafka")
            writer = writer.option("kafka.bootstrap.servers", self.servers)
            writer = writer.option("topic", self.topic)
            return (writer.trigger(availableNow=True) if once else writer).start()
        if self.kind == "parquet":
            path = self.path

            # One folder for each micro-batch, written anew if it is replayed: nothing comes twice.
            def write(batch: DataFrame, number: int) -> None:
                batch.write.mode("overwrite").parquet(f"{path}/batch={number}")

            return writer.foreachBatch(write).start()
        return writer.foreachBatch(lambda batch, _: show(batch)).start()


def _require_known(name: str, kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {kind!r}")
