"""The results of `steelyard stream`: a frame of results enters; a running query leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from steelyard.spark.failures import plain_failures

OUTPUTS = ("console", "parquet", "kafka")
"""Kinds of places that results can be written to."""

RunningQuery = StreamingQuery
"""A query that commands watch and stop; they do not import pyspark themselves."""


@dataclass(frozen=True)
class StreamOutput:
    """Where results go: the newest result of a key counts, results come again as they change."""

    kind: str
    path: str | None = None
    servers: str | None = None
    topic: str | None = None
    once: bool = False
    """Whether the query ends when it has read everything that is there."""

    def __post_init__(self) -> None:
        if self.kind not in OUTPUTS:
            raise ValueError(f"sink must be one of {', '.join(OUTPUTS)}, got {self.kind!r}")
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
        self, results: DataFrame, key: str, checkpoint: str, show: Callable[[DataFrame], None]
    ) -> StreamingQuery:
        """Run the query.

        Args:
            results: The results of each key.
            key: The column of the key, which becomes the key of Kafka's messages.
            checkpoint: The folder from which a restarted query resumes.
            show: Called with the results of every micro-batch if they go to the console.
        """
        with plain_failures(f"sink {self.kind}"):
            if self.kind == "kafka":
                writer = self._write_topic(results, key)
            elif self.kind == "parquet":
                writer = results.writeStream.foreachBatch(self._write_folder)
            else:
                writer = results.writeStream.foreachBatch(lambda batch, _: show(batch))
            writer = writer.outputMode("update").option("checkpointLocation", checkpoint)
            return (writer.trigger(availableNow=True) if self.once else writer).start()

    def _write_topic(self, results: DataFrame, key: str) -> DataStreamWriter:
        assert self.servers is not None
        assert self.topic is not None
        messages = results.select(
            results[f"`{key}`"].cast("string").alias("key"),
            F.to_json(F.struct("*")).alias("value"),
        )
        writer = messages.writeStream.format("kafka")
        return writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.topic)

    def _write_folder(self, batch: DataFrame, number: int) -> None:
        """Write a folder for each micro-batch; a replay replaces it, so no result is doubled."""
        batch.write.mode("overwrite").parquet(f"{self.path}/batch={number}")
