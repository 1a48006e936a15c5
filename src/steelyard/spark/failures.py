"""Shorten the errors of Spark and Java to one sentence.

Errors of Spark and Java enter; `SparkFailed` with one readable sentence leaves. This module does
not import pyspark, so commands can catch `SparkFailed` before they load Spark.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_SPARK_MESSAGE = re.compile(r"\[[A-Z][A-Z0-9_.]+\] [^\n]+")
"""A message of Spark, which begins with an error class in brackets."""

_JAVA_ERROR = re.compile(r"^(?:Caused by)?: (\S[^\n]*)", re.MULTILINE)
"""The line of a Java stack trace that names an error or its cause."""

_JAVA_CLASS = re.compile(r"(?:[\w$]+\.)+[\w$]+(?:Exception|Error): (?=\S)")
"""The name of a Java error class before its message."""

_NO_KAFKA = re.compile(r"(?i)data ?source:? \S*kafka|DATA_SOURCE_NOT_FOUND|kafka\S* is not found")
"""Spark's error if its connector to Kafka is missing."""


class SparkFailed(ValueError):  # noqa: N818
    """Spark could not be started, or could not read data; `__cause__` is the original error."""


def is_of_spark(error: Exception) -> bool:
    """Whether Spark, or the bridge to its JVM, raised an error."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


@contextmanager
def plain_failures(what: str) -> Iterator[None]:
    """Replace errors of Spark by a `SparkFailed` of one sentence; do not change other errors.

    If Ctrl-C interrupts PySpark while it reads results, it closes the connection, and then raises
    the error of this connection in place of `KeyboardInterrupt`.
    """
    try:
        yield
    except Exception as error:
        if any(isinstance(cause, KeyboardInterrupt) for cause in _contexts(error)):
            raise KeyboardInterrupt from error
        if not is_of_spark(error):
            raise
        raise SparkFailed(f"{what}: {sentence_of(str(error))}") from error


def _contexts(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that were handled when an error was raised."""
    while error.__context__ is not None:
        error = error.__context__
        yield error


@contextmanager
def kafka_failures(what: str) -> Iterator[None]:
    """Do the same as `plain_failures`, and say how Spark gets its connector to Kafka."""
    try:
        with plain_failures(what):
            yield
    except SparkFailed as error:
        if not _NO_KAFKA.search(str(error)):
            raise
        # This module does not import pyspark; after an error of Spark it is loaded.
        from steelyard.spark.versions.interfaces import kafka_connector

        raise SparkFailed(
            f"{what}: Spark has no connector to Kafka; pass its jars with --jars, or its package "
            f"with --conf spark.jars.packages={kafka_connector()}"
        ) from error.__cause__


def sentence_of(text: str) -> str:
    r"""Return the message of the root cause: the last one of Spark, or else the last one of Java.

    >>> sentence_of("called o4.load.\n: java.lang.RuntimeException: java.io.IOException: No room")
    'No room'
    >>> sentence_of("calling o4.load.\n: a.B\n\tat a.C\nCaused by: a.DException: [NO_ROOM] None.")
    '[NO_ROOM] None.'
    """
    messages = _SPARK_MESSAGE.findall(text)
    if messages:
        return str(messages[-1])
    errors = _JAVA_ERROR.findall(text)
    cause = str(errors[-1]) if errors else (text.strip() or "no reason given").splitlines()[0]
    return _JAVA_CLASS.sub("", cause)
