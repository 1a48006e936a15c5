"""A query from Kafka to Kafka, with a real broker that restarts while the query runs."""

import json
import os
import subprocess
import sys

import pytest

from tests.spark.streaming.on_kafka import MESSAGES
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.mark.parametrize("placement", ["pull", "delegated"])
def test_words_are_counted_exactly(tmp_path, placement):
    """Each message counts once, also with a null key; latencies are from Kafka's timestamps."""
    command = [sys.executable, "-m", "tests.spark.streaming.on_kafka", placement, str(tmp_path)]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    most = 3 * PATIENCE  # the program has its own timeout, and then stops its broker
    ran = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=most, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["truth"] == found["counts"]
    assert MESSAGES == sum(count for _, count in found["counts"])
    assert [None] in [[key] for key, _ in found["counts"]]
    assert 8 == found["partitions"]
    assert all(0.01 < p99 < 600 for p99 in found["latencies"])
