"""Differences between versions of Spark.

A version enters, as `session.version` has it; what differs there leaves.
"""

import re
import warnings

from pyspark.sql import SparkSession

CLOSES_SOCKETS = {(4, 1): 4, (4, 2): 1}
"""By minor version, the first patch version in which `transformWithState` closes its sockets.

Measured on 4.1.1 and 4.1.4; the others follow from the branches into which the fix was merged. Of
minor versions that are not here no leak is known.
"""


def socket_leak(version: str) -> str | None:
    """Describe how stateful Python stages leak sockets on this version, or return None.

    Suffixes of vendors and of builds do not count. A vendor may have fixed the leak in an older
    version, which its number does not tell: the answer is for a warning, not for a refusal.

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
        "(SPARK-58932), until its executors can open no more and the query fails: use Spark "
        f"{major}.{minor}.{fixed} or newer"
    )


def warn_of_leaks(session: SparkSession, stacklevel: int) -> None:
    """Warn, when a query is defined, that it cannot run for long on this version of Spark.

    On Spark Connect the version is the server's. The stack level is what the caller would give to
    `warnings.warn` itself.
    """
    leak = socket_leak(session.version)
    if leak is not None:
        warnings.warn(leak, stacklevel=stacklevel + 1)
