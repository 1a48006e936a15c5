"""What Spark has counted while an action ran."""

from contextlib import suppress
from threading import Thread
from typing import Any

from pyspark.sql import Observation


def observed(observation: Observation, patience: float) -> dict[str, Any] | None:
    """The counts of the first action, if they come within so many seconds.

    None if no action has run, or it failed.

    >>> from pyspark.sql import functions as F
    >>> counted = Observation()
    >>> rows = spark.range(7).observe(counted, F.count("id").alias("rows"))
    >>> observed(counted, patience=0.1)
    >>> _ = rows.collect()
    >>> observed(counted, patience=10)
    {'rows': 7}
    """
    seen: list[dict[str, Any]] = []

    def wait() -> None:
        with suppress(Exception):  # the action failed, or Spark was stopped in the meantime
            seen.append(observation.get)

    # Spark gives no way to ask without waiting, perhaps for ever.
    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(patience)
    return seen[0] if seen and seen[0] else None
