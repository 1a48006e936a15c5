"""Lengths of time as text: those that users write enter, and those that reports show leave."""

import re
from math import isnan

_UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_LENGTH = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*({'|'.join(_UNITS)})s?\s*", re.IGNORECASE)


def seconds_of(name: str, length: str, *, least: float | None = None) -> float:
    """Return the seconds of a length of time such as "10 minutes".

    Raise a ValueError for any other text, and for 0 unless `least` is given.

    >>> seconds_of("window", "10 minutes")
    600.0
    """
    found = _LENGTH.fullmatch(length) if isinstance(length, str) else None
    if found is None or (least is None and not float(found[1])):
        raise ValueError(
            f"{name} must be a length of time such as '30 seconds' or '5 minutes', got {length!r}"
        )
    return float(found[1]) * _UNITS[found[2].lower()]


def shown_length(seconds: float | None, digits: int = 3) -> str:
    """Format a length of time, never with an exponent; an unknown one is a dash.

    >>> [shown_length(seconds) for seconds in (0.0123, 0.9999, 2.5, 150, 7_200_000, None)]
    ['12.3 ms', '1 s', '2.5 s', '2.5 min', '2,000 h', '–']
    >>> shown_length(0.0997, digits=2), shown_length(166, digits=2)
    ('100 ms', '2.8 min')
    """
    if seconds is None or isnan(seconds):
        return "–"
    largest = 100 - 0.5 * 10 ** (2 - digits)
    for size, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * size:
            number = seconds / size
            return f"{number:,.0f} {unit}" if number >= largest else f"{number:.{digits}g} {unit}"
    return "0 s" if seconds == 0 else f"{seconds * 1e6:.2g} µs"
