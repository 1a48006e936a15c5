"""Sessions for commands: join what runs, stop only what was started."""

import os
import subprocess
import sys
from threading import Thread

import pyarrow.parquet as pq

from steelyard.spark.session import parallelism, session


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
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "100 messages of zf are in" in done.stdout
    assert "NativeCodeLoader" not in done.stderr
    assert pq.read_table(tmp_path / "zf").num_rows == 100


def test_parallelism_is_the_number_of_slots(spark):
    """Two cores here."""
    assert parallelism(spark) == 2
