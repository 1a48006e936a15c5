"""Format numbers, keys and lists for the page. Values enter; text leaves."""

import time
from collections.abc import Iterable

from steelyard.durations import shown_length
from steelyard.printable import printable

_LONGEST = 60

seconds = shown_length


def shortened(key: str) -> str:
    r"""Format a key in one line; escape unprintable characters and cut long keys.

    >>> shortened("two\nlines"), shortened("")
    ('two\\nlines', '(empty)')
    """
    if not key:
        return "(empty)"
    visible = printable(key)
    return visible if len(visible) <= _LONGEST else visible[: _LONGEST - 1] + "…"


def whole(number: float) -> str:
    """Format a number of messages: small ones exactly, large ones with three digits.

    >>> whole(0), whole(0.4), whole(9876.4), whole(1_234_567)
    ('0', '0.4', '9,876', '1.23 M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            per = 1e3 if unit == "k" else size
            return f"{_three(number / per)} {unit}"
    return f"{number:,.0f}" if number >= 10 or number == round(number) else f"{number:.1f}"


def _three(number: float) -> str:
    return (
        f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
    )


def percent(part: float) -> str:
    """Format a fraction as a percentage.

    >>> percent(0.1234), percent(0.004), percent(0)
    ('12 %', '0.4 %', '0 %')
    """
    return (
        f"{part:.1%}".replace("%", " %") if 0 < part < 0.0995 else f"{part:.0%}".replace("%", " %")
    )


def moment(at: float, *, is_simulated: bool) -> str:
    """Format the end of a slot: local time, or time since the start of a simulated stream.

    >>> moment(5400, is_simulated=True)
    '1:30:00'
    """
    if is_simulated:
        minutes, rest = divmod(round(at), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
    return time.strftime("%H:%M:%S", time.localtime(at))


def listed(numbers: Iterable[int], most: int = 6) -> str:
    """Format ascending numbers of workers for a sentence.

    >>> listed([3]), listed([1, 2, 5]), listed([0, 2, 3, 4, 9]), listed(range(0, 20, 2))
    ('3', '1, 2 and 5', '0, 2–4 and 9', '0, 2, 4, 6, 8, 10 and 4 more')
    """
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    names = [name for group in groups for name in _range(group)]
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return joined(names)


def _range(group: list[int]) -> list[str]:
    return [f"{group[0]}–{group[-1]}"] if len(group) > 2 else list(map(str, group))


def joined(names: list[str]) -> str:
    """Join names for a sentence.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def workers(numbers: Iterable[int]) -> str:
    """Name workers at the start of a sentence.

    >>> workers([6, 7])
    'Workers 6 and 7'
    """
    known = list(numbers)
    return f"Worker{'s' if len(known) > 1 else ''} {listed(known)}"


def many(number: int, thing: str) -> str:
    """Format a number of things.

    >>> many(1, "move"), many(1200, "move")
    ('1 move', '1,200 moves')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
