"""Commands use an active session, or start one and stop it."""

import os
import socket
import subprocess
import sys
from threading import Thread

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError

from steelyard.control.redaction import without_kept
from steelyard.spark.failures import SparkFailed
from steelyard.spark.session import _require_an_answer, _starting, parallelism, session
from tests.waiting import PATIENCE


def test_an_active_session_is_used_and_not_stopped(spark):
    """This also holds in another thread, which has no active session."""
    used = []

    def work():
        with session("test") as found:
            used.append(found)

    work()
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert [spark, spark] == used
    assert spark.range(3).count() == 3


def test_a_command_starts_spark_and_stops_it(tmp_path):
    """In a process without a session, Spark starts with few log lines."""
    # If these tests run on Spark Connect, its variables must not affect the command.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SPARK_")}
    command = [sys.executable, "-m", "steelyard.cli", "generate", "zf", "--fraction", "1e-5"]
    conf = ["--conf", "spark.sql.parquet.compression.codec=gzip"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "zf"), "--master", "local[1]", *conf],
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
    assert list((tmp_path / "zf").glob("*.gz.parquet")), "--conf reaches Spark"


@pytest.mark.parametrize(
    "command",
    [
        ["generate", "zf", "--out", "nowhere"],
        ["doctor", "README.md", "--source", "csv", "--key", "k"],
        ["stream", "--key", "value"],
    ],
)
def test_a_command_prints_one_sentence_if_spark_does_not_start(command):
    """The exit code is 2, and there is no traceback."""
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


def test_a_master_that_does_not_answer_is_reported():
    """Spark stops its context, and its error says only that the context is stopped."""
    text = "calling None.X.\n: a.BException: Cannot call methods on a stopped SparkContext.\nThis"
    sentence = "Spark at spark://nohost:7077 cannot be started: no master answers; is one running"
    with pytest.raises(SparkFailed, match=sentence), _starting("spark://nohost:7077"):
        raise Py4JError(text)


def test_the_token_of_a_connect_server_is_in_no_error(monkeypatch):
    """Neither in our sentence nor in one of Spark that quotes the address."""
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("steelyard.spark.session.SparkSession.active", _no_session)
    monkeypatch.setattr("steelyard.spark.session.require_connect", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    master = f"sc://127.0.0.1:{port}/;token=sword%2Ffish;use_ssl=true"
    sentence = f"Spark at sc://127.0.0.1:{port} cannot be"
    with pytest.raises(SparkFailed, match=sentence) as failed, session("test", master):
        pass
    assert "fish" not in str(failed.value)
    assert "sword" not in without_kept(f"bad parameter in {master}, token sword/fish")


def _no_session():
    raise PySparkRuntimeError("none")


@pytest.mark.parametrize("address", ["sc://127.0.0.1:{}", "sc://127.0.0.1:{}/;user_id=me"])
def test_a_connect_server_that_does_not_answer_is_reported_at_once(address, monkeypatch):
    """Spark alone would retry for ten minutes."""
    monkeypatch.delenv("grpc_proxy", raising=False)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("http_proxy", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as free:
        there = address.format(free.getsockname()[1])
        _require_an_answer(there)
    sentence = "cannot be started: no server answers .Connection refused.; is a Connect server"
    with pytest.raises(SparkFailed, match=sentence):
        _require_an_answer(there)
    with pytest.raises(SparkFailed, match="no server answers"):
        _require_an_answer("sc://127.0.0.1:port")


def test_parallelism_is_the_number_of_task_slots(spark):
    """The test session has two cores."""
    assert parallelism(spark) == 2
