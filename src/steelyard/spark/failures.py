"""What Spark throws, as one sentence.

Errors of Spark's and of Java's enter; one that people can read leaves. Nothing here imports
pyspark, so that commands can know its errors before they need Spark.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_SAID = re.compile(r"\[[A-Z][A-Z0-9_.]+\] [^\n]+")
"""Spark's own sentence, among the names of classes."""

_THROWN = re.compile(r"^(?:Caused by)?: (\S[^\n]*)", re.MULTILINE)
"""The line in which Java tells an error, or what it came from."""

_CLASSES = re.compile(r"(?:[\w$]+\.)+[\w$]+(?:Exception|Error): (?=\S)")
"""The name of an error's class before what it says."""


class SparkFailed(ValueError):  # noqa: N818
    """Spark could not be started, or could not read data; the cause is what it threw."""


@contextmanager
def failures_told(what: str) -> Iterator[None]:
    """Turn what Spark throws into one sentence; errors of others go on as they are."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise SparkFailed(f"{what}: {sentence_of(str(error))}") from error


def sentence_of(text: str) -> str:
    r"""What went wrong first, which is told last: Spark's sentence, or else Java's.

    >>> sentence_of("called o4.load.\n: java.lang.RuntimeException: java.io.IOException: No room")
    'No room'
    >>> sentence_of("calling o4.load.\n: a.B\n\tat a.C\nCaused by: a.DException: [NO_ROOM] None.")
    '[NO_ROOM] None.'
    """
    said = _SAID.findall(text)
    if said:
        return str(said[-1])
    thrown = _THROWN.findall(text)
    first = str(thrown[-1]) if thrown else (text.strip() or "no reason given").splitlines()[0]
    return _CLASSES.sub("", first)
