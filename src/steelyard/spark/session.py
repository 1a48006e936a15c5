"""A Spark session for commands: local unless a master is named."""

import logging
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from steelyard.printable import printable
from steelyard.spark.failures import SparkFailed, failures_told

STATE_IN_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # What has changed is written, not the files that hold it: a seventh of a commit's time.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The first is what workers that stay need; the second makes all that has state quicker."""

CHECKPOINTS_ON_DISK = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Quicker checkpoints on a local disk, where a file can be renamed as a whole.

What Spark takes else starts programs of the shell for each file, unless Hadoop's native library is
there: half a second for every commit of state, with eight tasks on two cores. Checksums of Spark's
own are files too; Hadoop keeps some for all files on a local disk, and looks at them.
"""

ONE_FILE_A_TASK = {"spark.shuffle.sort.bypassMergeThreshold": "1"}
"""What a task sends to others is one file, sorted, and not at first a file for each of them.

With many short tasks that is much of a micro-batch's time: 3.6 s in place of 5.0 with 24 workers of
6 tasks each on two cores, and no work.
"""

BATCHES_BY_ROWS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Batches for Python end after 10,000 rows, whatever their bytes.

To know the bytes Spark asks every column after every row: two fifths of the time in which it writes
rows for Python. Who has rows of 100 kB and more should give it a limit again.
"""

_CONNECT_PORT = 15002
"""Of a Connect server, if its address names none."""

_ANSWER = 10.0
"""Seconds in which a server that is there answers."""

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""With one of these set a server need not be within reach itself."""


@contextmanager
def session(
    name: str,
    master: str = "local[*]",
    more: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Start Spark, or join one that runs in this process; stop what was started.

    `sc://host` is the address of a Spark Connect server; `more` are settings of a Spark that is
    started here, and `log` is where all that it says goes, instead of the terminal.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running: SparkSession | None = None
    with suppress(PySparkRuntimeError):  # there is none
        running = SparkSession.active()  # this thread's, or that of any thread
    if running is not None:
        yield running
        return
    _require_an_answer(master)
    builder = SparkSession.builder.appName(name)
    builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        **ONE_FILE_A_TASK,
        **BATCHES_BY_ROWS,
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings |= CHECKPOINTS_ON_DISK
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not master.startswith("sc://"):
        quiet = Path(__file__).with_name("log4j2.properties").as_uri()
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={quiet}"
    with _starting(master), nullcontext() if log is None else _told_to(log):
        spark = builder.config(map={**settings, **(more or {})}).getOrCreate()
        _ = spark.version  # a Connect server is asked for nothing before this
    # Commands say in a sentence what pyspark would log as JSON too.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    try:
        yield spark
    finally:
        from steelyard.spark.streaming.listening import stop_listening

        stop_listening(spark)
        spark.stop()


def _require_an_answer(master: str) -> None:
    """Refuse a Connect server that is not there, which Spark would ask again for ten minutes."""
    if not master.startswith("sc://") or any(map(os.environ.get, _PROXIES)):
        return
    try:
        address = urlsplit(master)
        host, port = address.hostname or "", address.port or _CONNECT_PORT
        with socket.create_connection((host, port), timeout=_ANSWER):
            pass
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SparkFailed(
            f"Spark at {master} cannot be started: nobody answers there ({why}); is a Connect "
            "server running?"
        ) from error


@contextmanager
def _starting(master: str) -> Iterator[None]:
    """Where Spark does not start there is one sentence."""
    what = f"Spark at {master} cannot be started"
    try:
        with failures_told(what):
            yield
    except SparkFailed as error:
        # It gives up an address where nobody answers, and stumbles over that afterwards.
        if "stopped SparkContext" not in str(error):
            raise
        raise SparkFailed(f"{what}: it gave up; is a master running there?") from error.__cause__


@contextmanager
def _told_to(log: Path) -> Iterator[None]:
    """Programs that are started now say to a file what they would say on stderr.

    This process goes on as before; if it fails, what they have said is shown.
    """
    shown, ours = os.dup(2), sys.stderr
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        with open(shown, "w", buffering=1, closefd=False) as sys.stderr:
            yield
    except BaseException:
        for line in log.read_text(errors="replace").splitlines():
            os.write(shown, f"{printable(line.expandtabs())}\n".encode())
        raise
    finally:
        sys.stderr = ours
        os.dup2(shown, 2)
        os.close(shown)


def parallelism(spark: SparkSession) -> int:
    """How many tasks Spark would run at once."""
    partitions = spark.range(10_000).select(F.spark_partition_id().alias("partition"))
    return int(partitions.distinct().count())
