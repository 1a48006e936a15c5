"""The sink of `steelyard stream`: a DataFrame of results enters; a running query leaves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from steelyard.spark.failures import kafka_failures

OUTPUTS = ("console", "parquet", "kafka")
"""The kinds of sinks."""

_BATCH = "5 seconds"
"""The length of a batch in real-time mode; Spark allows no shorter one."""

RunningQuery = StreamingQuery
"""The type of a running query, for commands, which do not import pyspark."""


@dataclass(frozen=True)
class StreamOutput:
    """The settings of a sink. A changed result is written again; the newest one of a key is valid.

    Args:
        kind: One of `OUTPUTS`.
        path: The folder to write to, for the sink `parquet`.
        servers: Kafka's bootstrap servers.
        topic: Kafka's topic.
        once: Whether the query ends after it has read all available messages.
        options: Further options of Spark's sink, which may hold secrets.
        in_real_time: Whether the query runs in Spark's real-time mode, with batches of 5 seconds.

    Raises:
        ValueError: The kind is unknown, or one of its settings is missing.
    """

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    once: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    in_real_time: bool = False

    def __post_init__(self) -> None:
        if self.kind not in OUTPUTS:
            raise ValueError(f"sink must be one of {', '.join(OUTPUTS)}, got {self.kind!r}")
        if self.kind == "parquet" and not self.path:
            raise ValueError("sink parquet needs --out, the folder to write to")
        if self.kind == "kafka" and not (self.servers and self.topic):
            raise ValueError("sink kafka needs --out-servers (or --servers) and --out-topic")

    def require_room(self, checkpoint: str | None) -> None:
        """Refuse to write to a folder with results if there is no checkpoint to continue from."""
        if checkpoint is None and self.path and any(Path(self.path).glob("batch=*")):
            raise ValueError(
                f"{self.path!r} has results already, and this run would replace some of them: pass "
                "the --checkpoint of these results, or another --out"
            )

    def start(
        self,
        results: DataFrame,
        key: str,
        write: Callable[[DataFrame], DataStreamWriter],
        show: Callable[[DataFrame], None],
    ) -> StreamingQuery:
        """Start the query.

        Args:
            results: The results of each key.
            key: The column of the key, which becomes the key of Kafka's messages.
            write: Returns the writer of a frame, which has the checkpoint.
            show: Called with the results of every micro-batch, for the sink `console`.

        Returns:
            The running query.
        """
        with kafka_failures(f"sink {self.kind}"):
            if self.kind == "kafka":
                writer = self._to_topic(write(self._messages(results, key)))
            elif self.kind == "parquet":
                writer = write(results).foreachBatch(self._write_folder)
            else:
                writer = write(results).foreachBatch(lambda batch, _: show(batch))
            writer = writer.outputMode("update")
            if self.in_real_time:
                trigger = {"realTime": _BATCH}  # unknown to older versions of PySpark
                return writer.trigger(**trigger).start()
            return (writer.trigger(availableNow=True) if self.once else writer).start()

    def _messages(self, results: DataFrame, key: str) -> DataFrame:
        return results.select(
            results[f"`{key}`"].cast("string").alias("key"),
            F.to_json(F.struct("*")).alias("value"),
        )

    def _to_topic(self, writer: DataStreamWriter) -> DataStreamWriter:
        assert self.servers is not None
        assert self.topic is not None
        writer = writer.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic)
        return writer.options(**self.options)

    def _write_folder(self, batch: DataFrame, number: int) -> None:
        """Write a folder for each micro-batch; a replay replaces the folder."""
        batch.write.mode("overwrite").options(**self.options).parquet(f"{self.path}/batch={number}")
