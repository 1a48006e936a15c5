"""A Kafka broker, its topics, and producers that send words to them."""

import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from steelyard.deployment.grid_settings import SOURCES

_SCRIPT = Path(__file__).parents[3] / "scripts" / "kafka"
_TIMEOUT = 60.0
"""Seconds that a call to the broker may take."""
_CHUNK = 100_000


@contextmanager
def running_broker(servers: str | None, folder: Path) -> Iterator[str]:
    """Yield the given address, or start a broker for the duration of the context."""
    if servers is not None:
        yield servers
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    where = ("--folder", str(folder))
    try:
        yield _script("start", *where, "--port", port)
    finally:
        with suppress(ValueError):  # it would hide the reason of a failed start
            _script("stop", *where)


def connector() -> dict[str, str]:
    """Return the setting with which Spark finds its Kafka connector."""
    if _SCRIPT.exists():
        return {"spark.jars": _script("jars")}
    # Only this function needs pyspark.
    from steelyard.spark.versions.interfaces import kafka_connector

    return {"spark.jars.packages": kafka_connector()}


def _script(*arguments: str) -> str:
    if not _SCRIPT.exists():
        raise ValueError(
            "servers: a broker can be started only in a clone with scripts/kafka; "
            "name a running one with --servers"
        )
    ran = subprocess.run([_SCRIPT, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        raise ValueError(ran.stderr.strip() or ran.stdout.strip())
    return ran.stdout.strip()


@dataclass(frozen=True)
class Topic:
    """A topic with partitions of equal size; message i is in partition i modulo their number."""

    servers: str
    name: str
    messages: int
    partitions: int = SOURCES

    def last(self, messages: int) -> dict[str, dict[str, int]]:
        """Return the offsets at which the last messages of the topic start, for Spark."""
        start = (self.messages - messages) // self.partitions
        return {self.name: {str(p): start for p in range(self.partitions)}}


def create(servers: str, prefix: str) -> str:
    """Create a topic with a unique name, and return the name."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic
    except ImportError as error:
        raise ValueError(
            "a Kafka producer needs confluent-kafka: install it with 'pip install "
            '".[deploy]"\' in a clone of steelyard'
        ) from error
    name = f"steelyard-{prefix}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    try:
        admin.create_topics([NewTopic(name, SOURCES, 1)])[name].result(_TIMEOUT)
    except KafkaException as error:
        raise ValueError(f"the topic {name} cannot be created at {servers}: {error}") from error
    return name


def delete(servers: str, name: str) -> None:
    """Delete a topic from a user's cluster; ignore a failure."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    with suppress(KafkaException):
        admin.delete_topics([name])[name].result(_TIMEOUT)


def fill(servers: str, prefix: str, words: Sequence[pa.Array]) -> Topic:
    """Send words to a new topic, as the keys of messages."""
    name = create(servers, prefix)
    lost: list[str] = []
    producer = new_producer(servers, lost)
    number = 0
    for chunk in words:
        for word in chunk.to_pylist():
            _send(producer, name, word, number)
            number += 1
        producer.poll(0)
    if producer.flush(_TIMEOUT) or lost:
        why = lost[0] if lost else f"no answer within {_TIMEOUT:g} seconds"
        raise ValueError(f"{servers} did not accept all messages: {why}")
    return Topic(servers, name, number)


class ConstantRateProducer:
    """A thread that sends words at a constant rate; closing it deletes the topic."""

    def __init__(self, servers: str, words: pa.Array, rate: float) -> None:
        self._servers, self._rate = servers, rate
        self.topic = create(servers, "offered")
        self._words: list[str] = words.to_pylist()
        self.lost: list[str] = []
        """Reasons for which messages were not accepted."""
        self._producer = new_producer(servers, self.lost, linger=5)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._producer.flush(_TIMEOUT)
        delete(self._servers, self.topic)

    def _run(self) -> None:
        begin, sent = time.perf_counter(), 0
        while not self._is_over.wait(0.02):
            due = int((time.perf_counter() - begin) * self._rate)
            while sent < due and not self._is_over.is_set():
                _send(self._producer, self.topic, self._words[sent % len(self._words)], sent)
                sent += 1
            self._producer.poll(0)


def new_producer(servers: str, lost: list[str], linger: int = 50) -> Any:
    """Return a producer that keeps the order of messages; reasons of losses are added to `lost`."""
    from confluent_kafka import Producer

    def note(error: object, _: object) -> None:
        if error is not None:
            lost.append(str(error))

    return Producer(
        {
            "bootstrap.servers": servers,
            "enable.idempotence": True,  # otherwise retries may reorder messages
            "linger.ms": linger,
            "batch.size": 1 << 20,
            "compression.type": "lz4",
            "log_level": 2,
            "queue.buffering.max.messages": 10 * _CHUNK,
            "delivery.report.only.error": True,
            "on_delivery": note,
        }
    )


def _send(producer: Any, topic: str, word: str, number: int) -> None:
    while True:
        try:
            producer.produce(topic, key=word.encode(), partition=number % SOURCES)
        except BufferError:
            producer.poll(0.1)
        else:
            return
