"""Warn of versions of Spark that leak sockets in queries with Python state.

A version enters; a warning leaves, if the version has the defect.
"""

import re

from pyspark.sql import SparkSession

from steelyard.spark.caller_warnings import warn_caller

CLOSES_SOCKETS = {(4, 1): 4, (4, 2): 1}
"""By minor version, the first patch version in which `transformWithState` closes its sockets.

Measured on 4.0.5, 4.1.1, 4.1.4 and 4.2.1; the others follow from the branches into which the fix
was merged. Minor versions that are not listed have no known leak.
"""


def socket_leak(version: str) -> str | None:
    """Describe how stateful Python stages leak sockets on this version, or return None.

    Suffixes of vendors and of builds are ignored. A vendor may have fixed the leak in an older
    version, which the version number does not show. The result is therefore for a warning only.

    >>> socket_leak("4.1.4")
    >>> print(socket_leak("4.1.1-amzn-0"))
    Spark 4.1.1-amzn-0 leaks a socket in every task that keeps state for Python ...
    """
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)(?!\d)", version)
    if numbers is None:
        return None
    major, minor, patch = map(int, numbers.groups())
    fixed = CLOSES_SOCKETS.get((major, minor), 0)
    if patch >= fixed:
        return None
    return (
        f"Spark {version} leaks a socket in every task that keeps state for Python "
        "(SPARK-58932), until its executors cannot open more and the query fails; use Spark "
        f"{major}.{minor}.{fixed} or newer"
    )


def warn_of_leaks(session: SparkSession) -> None:
    """Warn, when a query is defined, that it cannot run for long on this version of Spark.

    On Spark Connect the version is that of the server.
    """
    leak = socket_leak(session.version)
    if leak is not None:
        warn_caller(leak)
