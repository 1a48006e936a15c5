"""Convert lengths of time that users write, such as "10 minutes", to seconds."""

import re

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
