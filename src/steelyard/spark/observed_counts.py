"""Read the metrics that Spark observes during an action.

An observed frame enters; the counts of its first action leave.
"""

from contextlib import suppress
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, Observation

from steelyard.spark.versions.interfaces import end_observation

_PATIENCE = 10.0
"""Seconds to wait until Spark ends an observation; it does so with an asynchronous event."""


class Observed:
    """The counts of the first action on a frame, with a limit on the time to wait for them.

    Pass `observation` to `DataFrame.observe`. Spark's own call blocks until an action has run, so a
    thread waits for it. There is at most one thread, which ends with the first action or with
    `close`.

    >>> from pyspark.sql import functions as F
    >>> counted = Observed()
    >>> rows = spark.range(7).observe(counted.observation, F.count("id").alias("rows"))
    >>> counted.within(0.1)
    >>> _ = rows.collect()
    >>> counted.within(10)
    {'rows': 7}
    """

    def __init__(self) -> None:
        self.observation = Observation()
        self._seen: dict[str, Any] | None = None
        self._waiting: Thread | None = None

    def within(self, seconds: float) -> dict[str, Any] | None:
        """Wait at most this many seconds and return the counts; None if no action has run."""
        if self._seen is None:
            if self._waiting is None or not self._waiting.is_alive():
                self._waiting = Thread(target=self._wait, daemon=True)
                self._waiting.start()
            self._waiting.join(seconds)
        return self._seen

    def close(self, frame: DataFrame) -> dict[str, Any] | None:
        """Stop observing and return the counts, or None; later actions are not observed.

        Args:
            frame: The observed frame, or one that is derived from it.
        """
        if self._waiting is not None and self._waiting.is_alive():
            end_observation(frame)
            self._waiting.join(_PATIENCE)
        return self._seen

    def _wait(self) -> None:
        with suppress(Exception):  # no metrics were observed, or Spark was stopped meanwhile
            self._seen = self.observation.get or None
