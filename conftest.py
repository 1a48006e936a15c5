"""Fixtures for the tests and for the examples in docstrings."""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestItem
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Compiling a loop for the first time takes seconds: no deadline for single examples.
settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# What lands is judged by the same examples every time; everybody else tries new ones.
settings.register_profile("ci", settings.get_profile("steelyard"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "steelyard")


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """One Spark for all tests: starting it takes seconds."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("steelyard tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def names_in_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Examples of the Spark layer may use `spark` and a `folder` to write to."""
    if isinstance(request.node, DoctestItem) and ".spark." in request.node.name:
        doctest_namespace["spark"] = request.getfixturevalue("spark")
        doctest_namespace["folder"] = request.getfixturevalue("tmp_path")
