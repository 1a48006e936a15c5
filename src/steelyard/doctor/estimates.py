"""Estimates of what cannot be counted: the time and the bytes of a row, and another table's size.

Numbers of the user enter; checked numbers leave. A kind of work has defaults for its times.
"""

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True)
class Estimates:
    """What the doctor cannot count, and assumes unless it is given.

    Args:
        row_time: The time that the work takes for a row, in microseconds; by default 100 for Python
            code, 4 for writing, and 2 for other work.
        row_bytes: The bytes of a row in a shuffle (in Spark's UI: shuffle read size / records); for
            a join the doctor measures it on some rows by default.
        other_bytes: The bytes of the other table of a join; unknown by default.

    Raises:
        ValueError: A number is not positive.

    >>> Estimates(row_time=0)
    Traceback (most recent call last):
    ...
    ValueError: row_time must be a positive number, got 0
    """

    row_time: float | None = None
    row_bytes: float | None = None
    other_bytes: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}")


NO_ESTIMATES = Estimates()
"""Nothing is known; the defaults of the work apply."""
