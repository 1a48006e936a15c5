"""`steelyard stream` and a real broker that asks for a password."""

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.spark.streaming.on_kafka import kafka
from tests.spark.streaming.secured_broker import (
    JAAS,
    PASSWORD,
    received,
    secured_broker,
    send,
)
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KEYS = ["the"] * 300 + [f"word {i % 50}" for i in range(700)]


def commands_with(secret):
    """Return the programs of this machine that show a text in the list of processes."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [file] if secret.encode() in file.read_bytes() else []
    return found


def count(folder, servers, jaas):
    """Count a topic once into another one; return the finished process and its output."""
    (folder / "client.properties").write_text(
        "# how to reach the brokers\n\n"
        "kafka.security.protocol = SASL_PLAINTEXT\nkafka.sasl.mechanism=PLAIN\n"
        "kafka.sasl.jaas.config=env:STEELYARD_JAAS\n"
    )
    given = f"@{folder / 'client.properties'}"
    command = [
        *(sys.executable, "-m", "steelyard.cli", "stream", "--source", "kafka", "--key", "key"),
        *("--servers", servers, "--topic", "words", "--option", given, "--once"),
        *("--sink", "kafka", "--out-topic", "counts", "--out-option", given),
        *("--control", folder / "control", "--checkpoint", folder / "checkpoint"),
        *("--jars", kafka("jars"), "--master", "local[2]"),
    ]
    with (folder / "output").open("wb") as output:
        running = subprocess.Popen(
            list(map(str, command)),
            stdout=output,
            stderr=output,
            env={**os.environ, "STEELYARD_JAAS": jaas, "COLUMNS": "200"},
        )
        shown = []
        until(lambda: running.poll() is not None or shown.extend(commands_with(jaas)))
    assert shown == []
    return running.returncode, (folder / "output").read_text()


def test_a_secured_topic_is_counted_without_showing_the_password(tmp_path):
    """The password is in no output, in no file and in no list of processes."""
    with secured_broker(tmp_path / "broker", "words", "counts") as servers:
        send(servers, "words", KEYS)
        code, output = count(tmp_path, servers, JAAS)
        assert code == 0, output
        truth = Counter(KEYS)
        newest = received(servers, "counts", lambda found: len(found) == len(truth))
        assert truth == {key: json.loads(value)["count"] for key, value in newest.items()}
        assert PASSWORD not in output
        wrong = JAAS.replace(PASSWORD, "guess-1234")
        code, output = count(tmp_path, servers, wrong)
        assert code == 1, output
        assert "Authentication failed" in output
        assert "guess-1234" not in output
    for folder in ("control", "checkpoint"):
        for file in (tmp_path / folder).rglob("*"):
            assert not file.is_file() or PASSWORD.encode() not in file.read_bytes()
