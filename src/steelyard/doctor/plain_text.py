"""Keys, times and numbers of workers as short plain text.

Values from data enter; text leaves that contains no control characters of a terminal.
"""

from datetime import UTC, datetime

from steelyard.key_text import columns_of, shown_key

__all__ = ["columns_of", "shown_key", "shown_time", "worker_count"]

_CLOCK = (3e8, 4e9)
"""Numbers in this range are shown as seconds since 1970: from 1979 to 2096."""


def shown_time(seconds: float, *, with_hours: bool = False) -> str:
    """Format a time as a date if it is plausible, else as a number.

    >>> shown_time(1.7e9), shown_time(1.7e9, with_hours=True), shown_time(1790.0)
    ('2023-11-14', '2023-11-14 22:13', '1790')
    """
    if not _CLOCK[0] <= seconds <= _CLOCK[1]:
        return f"{seconds:.10g}"
    when = datetime.fromtimestamp(seconds, UTC)
    return when.strftime("%Y-%m-%d %H:%M" if with_hours else "%Y-%m-%d")


def worker_count(workers: int) -> str:
    """Return a number of workers as text.

    >>> worker_count(1), worker_count(2000)
    ('1 worker', '2,000 workers')
    """
    return "1 worker" if workers == 1 else f"{workers:,} workers"


def shown_number(number: float) -> str:
    """Format a number of the user, without an exponent.

    >>> shown_number(0.5), shown_number(100.0), shown_number(2_000_000)
    ('0.5', '100', '2,000,000')
    """
    return f"{number:,.0f}" if number >= 10_000 else f"{number:g}"
