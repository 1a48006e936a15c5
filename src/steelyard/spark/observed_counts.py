"""What Spark has counted while an action ran."""

from contextlib import suppress
from threading import Thread
from typing import Any

from pyspark.sql import DataFrame, Observation

_PATIENCE = 10.0
"""Seconds that Spark may take to end an observation: it does so by an event, as all its news."""


class Observed:
    """The counts of the first action on a frame, for those who must not wait for ever.

    Give `observation` to `DataFrame.observe`. Only a thread can wait for it, as Spark has no way to
    ask without waiting: one thread at most, which ends with the first action or with `close`.

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
        """The counts if they come within so many seconds; None if no action has run."""
        if self._seen is None:
            if self._waiting is None or not self._waiting.is_alive():
                self._waiting = Thread(target=self._wait, daemon=True)
                self._waiting.start()
            self._waiting.join(seconds)
        return self._seen

    def close(self, frame: DataFrame) -> dict[str, Any] | None:
        """Wait no longer: the counts if they have come by now; later actions are not observed.

        Args:
            frame: The observed frame, or one that is made of it.
        """
        if self._waiting is not None and self._waiting.is_alive():
            # Spark needs no job for no rows, observes nothing, and so ends the observation.
            frame.limit(0).collect()
            self._waiting.join(_PATIENCE)
        return self._seen

    def _wait(self) -> None:
        with suppress(Exception):  # nothing was observed, or Spark was stopped in the meantime
            self._seen = self.observation.get or None
