"""From Kafka to Kafka, with a real broker that is restarted in the middle."""

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
    """Every message once, null keys too; latencies are told from Kafka's own times."""
    command = [sys.executable, "-m", "tests.spark.streaming.on_kafka", placement, str(tmp_path)]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    most = 3 * PATIENCE  # it waits itself, and stops its broker if that is in vain
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
