"""Reject invalid settings with one sentence: the name, the allowed values, the given value."""

import math
from numbers import Real


def require_between(
    name: str,
    value: float,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Raise a ValueError for a number outside `(above, most]` or `[least, most]`.

    >>> require_between("epsilon", 0.0, above=0, most=10)
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be a number above 0 and at most 10, got 0.0
    """
    is_number = isinstance(value, int | float | Real) and not isinstance(value, bool)
    if is_number and math.isfinite(value):
        too_low = (above is not None and value <= above) or (least is not None and value < least)
        if not too_low and (most is None or value <= most):
            return
    words = []
    if above is not None:
        words.append(f"above {above:,}")
    if least is not None:
        words.append(f"at least {least:,}")
    if most is not None:
        words.append(f"at most {most:,}")
    raise ValueError(f"{name} must be a number {' and '.join(words)}, got {value!r}")


def require_whole(name: str, value: int, *, least: int, most: int | None = None) -> None:
    """Raise a ValueError for anything but a whole number from `least` to `most`.

    >>> require_whole("bins", 0, least=1)
    Traceback (most recent call last):
    ...
    ValueError: bins must be a whole number, at least 1, got 0
    """
    limit = f"at least {least:,}" if most is None else f"from {least:,} to {most:,}"
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be a whole number, {limit}, got {value!r}")
