"""The doctor examines a topic of a real broker."""

import json
import os
import subprocess
import sys

import pytest

from tests.ports import free_port
from tests.spark.streaming.on_kafka import kafka
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

_PRODUCE = """
import sys
from steelyard.spark.session import session
servers, jars = sys.argv[1:]
with session("produce", "local[2]", {"spark.jars": jars}) as spark:
    rows = spark.range(0, 60_000, 1, 4).selectExpr(
        "if(id % 2 = 0, 'hot', if(id % 1000 = 1, null, concat('word ', id % 5000))) AS key",
        "string(id) AS value",
    )
    to = rows.write.format("kafka").option("kafka.bootstrap.servers", servers)
    to.option("topic", "words").save()
"""


def test_a_sample_of_a_topic_is_representative(tmp_path):
    """A short topic is read whole; a sample of a longer one has the same fraction of hot keys."""
    port = str(free_port())
    where = ("--folder", str(tmp_path / "broker"))
    servers, jars = kafka("start", *where, "--port", port), kafka("jars")
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}

    def run(*command):
        ran = subprocess.run(
            [sys.executable, *command], env=env, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        return ran.stdout

    def examined(*more):
        options = ["--servers", servers, "--topic", "words", "--jars", jars, "--json"]
        command = ["-m", "steelyard.cli", "doctor", "--source", "kafka", "--master", "local[2]"]
        return json.loads(run(*command, *options, *more))

    try:
        kafka("topic", "words", *where)
        run("-c", _PRODUCE, servers, jars)
        whole = examined("--time", "timestamp")
        assert (60_000, 0.5) == (whole["messages"], whole["p1"])
        assert None in [hot["key"] for hot in whole["top"]]
        assert whole["is_sample"]
        some = examined("--messages", "10000")
        assert 9_000 < some["messages"] < 12_000
        assert abs(some["p1"] - 0.5) < 0.05
    finally:
        kafka("stop", *where)
