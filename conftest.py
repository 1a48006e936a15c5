"""Fixtures for the tests and for the examples in docstrings."""

import os
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestItem
from hypothesis import HealthCheck, settings

from tests.ports import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The first compilation of a loop takes seconds, so single examples have no deadline.
settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# CI uses the same examples in every run; all other runs draw new examples.
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
    """Add options that run the same tests through Spark Connect or on separate executors."""
    parser.addoption("--connect", action="store_true", help="run Spark tests on Spark Connect")
    parser.addoption("--cluster", action="store_true", help="run Spark tests on a local cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the Spark tests, and skip those that this Spark or Spark Connect cannot run."""
    items.sort(key=_needs_spark, reverse=True)  # they take the longest
    for item in items:
        if "spark/streaming/" in item.nodeid and _runs_on_spark(item):
            least = "4.1" if config.getoption("--connect") else "4.0"
            item.add_marker(pytest.mark.needs_spark(least, reason="sy.group_stream"))
        for mark in item.iter_markers("needs_spark"):
            _skip_on_older_spark(item, *mark.args, **mark.kwargs)
    if not config.getoption("--connect"):
        return
    for item in items:
        if _runs_on_spark(item):
            _skip_on_older_spark(item, "4.0", reason="Spark Connect")
        for mark in item.iter_markers("classic_only"):
            item.add_marker(pytest.mark.skip(reason=f"classic only: {mark.kwargs['reason']}"))


def _skip_on_older_spark(item: pytest.Item, least: str, *, reason: str) -> None:
    found = version("pyspark")
    if _numbers(found) < _numbers(least):
        skip = pytest.mark.skip(reason=f"needs Spark {least}, and this is {found}: {reason}")
        item.add_marker(skip)


def _numbers(of_version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in of_version.split(".")[:2])


def _runs_on_spark(item: pytest.Item) -> bool:
    in_other_processes = ("streaming", "cluster", "kafka")
    return _needs_spark(item) or any(map(item.get_closest_marker, in_other_processes))


def _needs_spark(item: pytest.Item) -> bool:
    layers = (".spark.", ".deployment.", ".apps.")
    is_example = isinstance(item, DoctestItem) and any(layer in item.name for layer in layers)
    return is_example or "spark" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator["SparkSession"]:
    """A Spark session for all tests, because starting one takes seconds."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from steelyard.spark.session import CHECKPOINTS_ON_DISK, RETRY_LOST_TASKS_ONLY

    on_cluster = request.config.getoption("--cluster")
    master = "local-cluster[2,1,1024]" if on_cluster else "local[2]"
    builder = SparkSession.builder.master(master).appName("steelyard tests")
    builder = builder.config(map=SETTINGS | CHECKPOINTS_ON_DISK | RETRY_LOST_TASKS_ONLY)
    if on_cluster:
        builder = builder.config("spark.executorEnv.PYTHONPATH", str(request.config.rootpath))
        builder = builder.config("spark.locality.wait", "1s")  # workers share task slots
    if not request.config.getoption("--connect"):
        session = builder.getOrCreate()
        yield session
        session.stop()
        return
    # Python workers run in a folder of the session, so they need the path of the test modules.
    paths = [str(request.config.rootpath), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    # Start a server as `builder.remote("local[2]")` does, but on a free port: that call always
    # uses the same port, so two test runs could not overlap.
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
    """The address of a bucket on a local S3 server, for `pyarrow.fs`."""
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
    """A new address on an object store, which has no links."""
    return bucket.format(uuid.uuid4().hex)


@pytest.fixture(autouse=True)
def registered_schemes() -> Iterator[None]:
    """Remove the schemes that a test or an example has registered."""
    yield
    schemes = sys.modules.get("steelyard.schemes")
    if schemes is not None:
        schemes._OWN.clear()


@pytest.fixture(autouse=True)
def names_in_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Provide `spark` and a `folder` to write to in the examples of the Spark layer."""
    if isinstance(request.node, DoctestItem) and _needs_spark(request.node):
        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["folder"] = request.getfixturevalue("tmp_path")
