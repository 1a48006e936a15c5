"""Start or join a Spark session for commands.

A master enters, local by default; a session leaves.
"""

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from steelyard.control.redaction import is_secret, keep_secret, secret_parts, without_kept
from steelyard.printable import printable
from steelyard.spark.failures import SparkFailed, plain_failures
from steelyard.spark.interrupts import deferred_interrupts
from steelyard.spark.versions.interfaces import CHECKPOINT_FILE_MANAGER, stop_logging_errors
from steelyard.spark.versions.supported import require_connect

STATE_IN_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Commits write only the changes and not whole files: a seventh of the time of a commit.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""Delegated workers need the first setting; the second makes every stateful query faster."""

CHECKPOINTS_ON_DISK = {
    "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILE_MANAGER,
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Faster checkpoints on a local disk, where renaming a file is atomic.

Without Hadoop's native library, Spark's default starts shell programs for each file. That takes
half a second for every commit of state, with eight tasks on two cores. Spark's own checksums are
additional files; Hadoop already writes and verifies checksums of all files on a local disk.
"""

ONE_FILE_A_TASK = {"spark.shuffle.sort.bypassMergeThreshold": "1"}
"""Each map task writes one sorted shuffle file, instead of first one file for each reducer.

With many short tasks this saves much of a micro-batch's time: 3.6 s instead of 5.0 s with 24
workers of 6 tasks each on two cores, and no work.
"""

BATCHES_BY_ROWS = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Arrow batches for Python end after 10,000 rows, without a limit on their bytes.

For a limit on bytes, Spark measures every column after every row. That takes two fifths of the time
in which it writes rows for Python. Set a limit again if rows have 100 kB or more.
"""

RETRY_LOST_TASKS_ONLY = {
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}
"""A retry repeats the lost tasks only.

By default Spark 4.2 repeats or fails the stages after a task whose retry writes other bytes. The
bytes of a block differ if its rows have another order.
"""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""Options of the JVM; those of the user follow ours."""

_CONNECT_PORT = 15002
"""Port of a Connect server whose address has no port."""

_ANSWER = 10.0
"""Seconds to wait for a server to accept a connection."""

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""If one of these variables is set, the server need not be reachable directly."""


@contextmanager
def session(
    name: str,
    master: str = "local[*]",
    more: Mapping[str, str] | None = None,
    log: Path | None = None,
) -> Iterator[SparkSession]:
    """Use the session that is active in this process, or start one and stop it at the end.

    Args:
        name: The name of the application.
        master: The Spark master, or `sc://host` for a Spark Connect server.
        more: Settings for a session that is started here.
        log: The file that gets the log of a session that is started here, instead of the terminal.

    Yields:
        The session.

    Raises:
        SparkFailed: The session cannot be started.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    running: SparkSession | None = None
    with suppress(PySparkRuntimeError):  # no session is active
        running = SparkSession.active()  # of this thread or of any other
    if running is not None:
        yield running
        return
    _keep_token(master)
    try:
        require_connect(master)
    except ValueError as error:
        raise SparkFailed(str(error)) from error
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
        **RETRY_LOST_TASKS_ONLY,
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        settings |= CHECKPOINTS_ON_DISK
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if not master.startswith("sc://"):
        quiet = Path(__file__).with_name("log4j2.properties").as_uri()
        settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={quiet}"
    given = dict(more or {})
    if _JAVA_OPTIONS in given and _JAVA_OPTIONS in settings:
        settings[_JAVA_OPTIONS] += f" {given.pop(_JAVA_OPTIONS)}"
    elsewhere = nullcontext() if log is None else _stderr_to(log)
    try:
        with deferred_interrupts(), _starting(master), elsewhere:
            running = builder.config(map={**settings, **given}).getOrCreate()
            running.conf.get("spark.app.name", None)  # the first request to a Connect server
        stop_logging_errors()  # commands print one sentence for each error
        yield running
    finally:
        if running is not None:
            from steelyard.spark.streaming.listening import stop_listening

            stop_listening(running)
            running.stop()


def _keep_token(master: str) -> None:
    """Show no secret parameter of a Connect server, such as its token, in an error."""
    for parameter in master.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if is_secret(name):
            keep_secret([*secret_parts(value), *secret_parts(unquote(value))])


def _shown(master: str) -> str:
    """Return a master without its parameters, of which one may be a token.

    >>> _shown("sc://host:443/;token=secret;use_ssl=true"), _shown("local[2]")
    ('sc://host:443', 'local[2]')
    """
    return master.partition(";")[0].rstrip("/")


def _require_an_answer(master: str) -> None:
    """Refuse a Connect server that does not answer; Spark would retry for ten minutes."""
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
            f"Spark at {_shown(master)} cannot be started: no server answers ({why}); is a Connect "
            "server running?"
        ) from error


@contextmanager
def _starting(master: str) -> Iterator[None]:
    """Raise `SparkFailed` with one sentence if Spark does not start."""
    what = f"Spark at {_shown(master)} cannot be started"
    try:
        with plain_failures(what):
            yield
    except SparkFailed as error:
        # If no master answers, Spark stops its context, and then fails because it is stopped.
        if "stopped SparkContext" not in str(error):
            raise
        raise SparkFailed(
            f"{what}: no master answers; is one running at this address?"
        ) from error.__cause__


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of programs that are started now to a file.

    This process still writes to the terminal. If the block fails, the file is shown there.
    """
    terminal, ours = os.dup(2), sys.stderr
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        with open(terminal, "w", buffering=1, closefd=False) as sys.stderr:
            yield
    except Exception:
        for line in log.read_text(errors="replace").splitlines():
            shown = printable(without_kept(line.expandtabs()))
            os.write(terminal, f"{shown}\n".encode())
        raise
    finally:
        sys.stderr = ours
        os.dup2(terminal, 2)
        os.close(terminal)


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that Spark runs at the same time."""
    partitions = spark.range(10_000).select(F.spark_partition_id().alias("partition"))
    return int(partitions.distinct().count())
