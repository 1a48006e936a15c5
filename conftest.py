"""Fixtures for the tests and for the examples in docstrings."""

import os
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestItem
from hypothesis import HealthCheck, settings

from tests.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Compiling a loop for the first time takes seconds: no deadline for single examples.
settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# What lands is judged by the same examples every time; everybody else tries new ones.
settings.register_profile("ci", settings.get_profile("steelyard"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "steelyard")


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}
SERVER = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The same tests on another Spark: through a Connect server, or on executors of their own."""
    parser.addoption("--connect", action="store_true", help="run Spark tests on Spark Connect")
    parser.addoption("--cluster", action="store_true", help="run Spark tests on a local cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what Spark Connect cannot do."""
    items.sort(key=_needs_spark, reverse=True)  # it takes the longest: it begins first
    if not config.getoption("--connect"):
        return
    for item in items:
        for mark in item.iter_markers("classic_only"):
            item.add_marker(pytest.mark.skip(reason=f"classic only: {mark.kwargs['reason']}"))


def _needs_spark(item: pytest.Item) -> bool:
    layers = (".spark.", ".deployment.", ".apps.")
    is_example = isinstance(item, DoctestItem) and any(layer in item.name for layer in layers)
    return is_example or "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator["SparkSession"]:
    """One Spark for all tests: starting it takes seconds."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from steelyard.spark.session import CHECKPOINTS_ON_DISK

    on_cluster = request.config.getoption("--cluster")
    master = "local-cluster[2,1,1024]" if on_cluster else "local[2]"
    builder = SparkSession.builder.master(master).appName("steelyard tests")
    builder = builder.config(map=SETTINGS | CHECKPOINTS_ON_DISK)
    if on_cluster:
        builder = builder.config("spark.executorEnv.PYTHONPATH", str(request.config.rootpath))
        builder = builder.config("spark.locality.wait", "1s")  # workers share slots
    if not request.config.getoption("--connect"):
        session = builder.getOrCreate()
        yield session
        session.stop()
        return
    # Python workers run in a folder of the session, not here: say where the tests' modules are.
    paths = [str(request.config.rootpath), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # What `builder.remote("local[2]")` does, which knows one port only: two could not run at once.
    port = free_port()
    server = builder.config(map=SERVER | {"spark.connect.grpc.binding.port": port}).getOrCreate()
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    yield session
    from steelyard.spark.streaming.listening import stop_listening

    stop_listening(session)
    session.stop()
    server.stop()


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A server that speaks S3, on this machine: the address of a bucket that `pyarrow.fs` finds."""
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import FileSystem

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    where = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    user = "s3://tester:secret@steelyard"
    FileSystem.from_uri(f"{user}{where}&allow_bucket_creation=true")[0].create_dir("steelyard")
    yield f"{user}/{{}}{where}"
    server.stop()


@pytest.fixture
def remote(bucket: str) -> str:
    """An address of its own on a store that cannot link files."""
    return bucket.format(uuid.uuid4().hex)


@pytest.fixture(autouse=True)
def names_in_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Examples of the Spark layer may use `spark` and a `folder` to write to."""
    if isinstance(request.node, DoctestItem) and _needs_spark(request.node):
        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["folder"] = request.getfixturevalue("tmp_path")
