"""The installed version of Spark, and what it cannot do.

A session and a feature enter; one sentence that names the version needed leaves, if any.
"""

import re
from functools import cache

import pyspark
from pyspark.sql import DataFrame, SparkSession

OLDEST = (3, 5)
"""The oldest version of Spark that Steelyard supports."""

STREAMS = (4, 0)
"""The first version with `group_stream`: Spark 3.5 has neither Python state nor scalar subqueries
in its DataFrame API."""

STREAMS_ON_CONNECT = (4, 1)
"""The first version with `group_stream` on Spark Connect: that of Spark 4.0 lacks Python state."""

REAL_TIME = (4, 3)
"""The first version whose real-time mode has a shuffle."""

CONNECT = (4, 0)
"""The first version with Spark Connect: that of Spark 3.5 has classes of its own for frames."""

SUBQUERIES = (4, 0)
"""The first version with `DataFrame.scalar`."""

PARTITION_IDS = (4, 1)
"""The first version with `DataFrame.repartitionById`."""


def version_of(session: SparkSession) -> tuple[int, int]:
    """Return the major and the minor version of Spark; on Spark Connect, the older of both sides.

    >>> version_of(spark) >= OLDEST
    True
    """
    return min(parsed(session.version), parsed(pyspark.__version__))


@cache
def parsed(version: str) -> tuple[int, int]:
    """Return the major and the minor number of a version; suffixes of vendors are ignored."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def require_version(
    session: SparkSession, least: tuple[int, int], what: str, instead: str = ""
) -> None:
    """Refuse what this version of Spark cannot do.

    Args:
        session: The session.
        least: The first version that can do it.
        what: The call, such as "sy.group_stream".
        instead: What users of older versions can do.

    Raises:
        ValueError: The version is too old.
    """
    if version_of(session) < least:
        found = min((session.version, pyspark.__version__), key=parsed)
        raise ValueError(f"{_too_old(what, least, found)}{instead}")


def require_streams(stream: DataFrame, instead: str) -> None:
    """Refuse a stream if this version of Spark lacks what `group_stream` needs.

    Args:
        stream: The stream; Spark Connect needs a later version than classic Spark.
        instead: What users of older versions can do.

    Raises:
        ValueError: The version is too old.
    """
    if is_of_connect(stream):
        call = "sy.group_stream through Spark Connect"
        require_version(stream.sparkSession, STREAMS_ON_CONNECT, call, instead)
    else:
        require_version(stream.sparkSession, STREAMS, "sy.group_stream", instead)


def require_connect(frame_or_master: object) -> None:
    """Refuse a frame of Spark Connect, or the address of a server, if PySpark is too old.

    >>> require_connect(spark.range(3))
    >>> require_connect("local[2]")
    """
    is_address = isinstance(frame_or_master, str) and frame_or_master.startswith("sc://")
    if (is_address or is_of_connect(frame_or_master)) and parsed(pyspark.__version__) < CONNECT:
        raise ValueError(_too_old("Spark Connect", CONNECT, pyspark.__version__))


def is_of_connect(it: object) -> bool:
    """Return True if a frame or a session is one of Spark Connect."""
    return type(it).__module__.startswith("pyspark.sql.connect.")


def _too_old(what: str, least: tuple[int, int], found: str) -> str:
    return f"{what} needs Spark {'.'.join(map(str, least))} or newer, and this is {found}"
