"""`steelyard stream --placement real-time`, with a real broker."""

import json
import os
import signal
import subprocess
import sys
import uuid

import pyspark
import pytest

from steelyard.deployment import broker
from steelyard.spark.versions.supported import REAL_TIME, parsed
from tests.waiting import until

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.skipif(
        parsed(pyspark.__version__) < REAL_TIME, reason="this Spark has no real-time mode"
    ),
]

MESSAGES = 2000


def results_of(consumer, totals):
    """Read new partial results, and return the count of each key so far."""
    for message in consumer.consume(500, timeout=1):
        assert message.error() is None
        partial = json.loads(message.value())["partial"]
        place = message.key().decode(), partial["worker"]
        totals[place] = max(totals.get(place, 0), partial["state_0"])
    found = {}
    for (key, _), count in totals.items():
        found[key] = found.get(key, 0) + count
    return found


def test_the_command_counts_a_topic(tmp_path):
    """The partial results of all workers add up to the messages of each key."""
    from confluent_kafka import Consumer

    with broker.running_broker(None, tmp_path / "broker") as servers:
        given, made = broker.create(servers, "given"), broker.create(servers, "made")
        keys = ["hot" if n % 2 else f"key {n % 40}" for n in range(MESSAGES)]
        producer = broker.new_producer(servers, [])
        for key in keys:
            producer.produce(given, key=key, value="x")
        producer.flush(60)
        command = [sys.executable, "-m", "steelyard.cli", "stream", "--placement", "real-time"]
        command += ["--source", "kafka", "--servers", servers, "--topic", given, "--key", "key"]
        command += [
            "--sink",
            "kafka",
            "--out-topic",
            made,
            "--jars",
            broker.connector()["spark.jars"],
        ]
        settings = {"bootstrap.servers": servers, "group.id": uuid.uuid4().hex}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([made])
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        log = tmp_path / "log"
        with log.open("wb") as out:
            running = subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=tmp_path)
        try:
            totals = {}
            found = until(
                lambda: sum((now := results_of(consumer, totals)).values()) >= MESSAGES and now,
                lambda: _require_running(running, log),
            )
            assert {key: keys.count(key) for key in set(keys)} == found
        finally:
            running.send_signal(signal.SIGINT)
            assert running.wait(120) == 0, log.read_text()[-2000:]
            consumer.close()


def _require_running(process, log):
    assert process.poll() is None, log.read_text()[-3000:]
