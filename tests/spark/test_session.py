"""Sessions for commands: join what runs, stop only what was started."""

import os
import socket
import subprocess
import sys
from threading import Thread

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError

from steelyard.spark.failures import SparkFailed
from steelyard.spark.session import _require_an_answer, _starting, parallelism, session
from tests.waiting import PATIENCE


def test_a_running_session_is_joined_and_left_running(spark):
    """From this thread, and from another, which has no active session of its own."""
    joined = []

    def work():
        with session("test") as found:
            joined.append(found)

    work()
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert [spark, spark] == joined
    assert spark.range(3).count() == 3


def test_a_command_starts_spark_of_its_own_and_stops_it(tmp_path):
    """In a process without a session; Spark has little to say while it starts."""
    # Where these tests run on Spark Connect, variables would tell the command to do so too.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    command = [sys.executable, "-m", "steelyard.cli", "generate", "zf", "--fraction", "1e-5"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "zf"), "--master", "local[1]"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "100 messages of zf are in" in done.stdout
    assert "NativeCodeLoader" not in done.stderr
    assert pq.read_table(tmp_path / "zf").num_rows == 100


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "zf", "--out", "nowhere"],
        ["doctor", "README.md", "--source", "csv", "--key", "k"],
        ["stream", "--key", "value"],
    ],
)
def test_where_spark_does_not_start_there_is_a_sentence(command):
    """Of every command, with exit code 2 and no traceback."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-m", "steelyard.cli", *command, "--master", "nonsense"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env=environment | {"COLUMNS": "200"},
    )
    assert done.returncode == 2, done.stderr
    assert "Spark at nonsense cannot be started: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_where_nobody_answers_is_told():
    """Spark stops what it has begun, and then says only that it is stopped."""
    thrown = "calling None.X.\n: a.BException: Cannot call methods on a stopped SparkContext.\nThis"
    sentence = "Spark at spark://nohost:7077 cannot be started: it gave up; is a master running"
    with pytest.raises(SparkFailed, match=sentence), _starting("spark://nohost:7077"):
        raise Py4JError(thrown)


@pytest.mark.parametrize("address", ["sc://127.0.0.1:{}", "sc://127.0.0.1:{}/;user_id=me"])
def test_a_connect_server_that_is_not_there_is_told_at_once(address, monkeypatch):
    """Spark alone would try for ten minutes."""
    monkeypatch.delenv("grpc_proxy", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        there = address.format(free.getsockname()[1])
        _require_an_answer(there)
    sentence = "cannot be started: nobody answers there .Connection refused.; is a Connect server"
    with pytest.raises(SparkFailed, match=sentence):
        _require_an_answer(there)
    with pytest.raises(SparkFailed, match="nobody answers there"):
        _require_an_answer("sc://127.0.0.1:port")


def test_parallelism_is_the_number_of_slots(spark):
    """Two cores here."""
    assert parallelism(spark) == 2
