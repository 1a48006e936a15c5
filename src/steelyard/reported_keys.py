"""Name keys in reports: as they are, by a hash, or not at all.

Keys as text enter; the text that the history, pages, messages and errors show leaves.
"""

import hmac
import os
from dataclasses import dataclass, field
from typing import Self

REPORT_KEYS = ("plain", "hashed", "hidden")
"""The values of the argument `report_keys`."""

DEFAULT = "STEELYARD_REPORT_KEYS"
"""The environment variable with the value for calls without the argument."""

SECRET = "STEELYARD_KEY_SECRET"  # noqa: S105  # the name of a variable
"""The environment variable with the secret of the hashes."""

HIDDEN = "(hidden)"

_DIGITS = 16


@dataclass(frozen=True)
class ReportedKeys:
    """The names of keys in reports.

    A hash depends only on the key and the secret, so a key can be followed over time. Without a
    secret, any reader who guesses a key can compute its hash.

    Args:
        mode: "plain" shows keys, "hashed" shows 16 hexadecimal digits, "hidden" shows nothing.
        secret: The secret of the hashes.

    >>> ReportedKeys("hashed", "a secret").shown("ada@example.org")
    '#d266fa008e239a68'
    """

    mode: str = "plain"
    secret: str = field(default="", repr=False)

    @classmethod
    def of(cls, report_keys: str | None = None) -> Self:
        """Return the setting of an argument or, if it is None, of the environment."""
        if report_keys is None:
            report_keys = os.environ.get(DEFAULT) or "plain"
            require_report_keys(DEFAULT, report_keys)
        require_report_keys("report_keys", report_keys)
        return cls(report_keys, os.environ.get(SECRET, ""))

    @property
    def are_hidden(self) -> bool:
        """Whether no key is named."""
        return self.mode == "hidden"

    def shown(self, key: str) -> str:
        """Return the text for a key, or for one column of a key."""
        if self.mode == "plain":
            return key
        if self.are_hidden:
            return HIDDEN
        text = key.encode("utf-8", "surrogatepass")
        return "#" + hmac.digest(self.secret.encode(), text, "sha256").hex()[:_DIGITS]

    def shown_columns(self, name: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """Return the text for each column of a key; a null stays a null."""
        return tuple(None if part is None else self.shown(part) for part in name)


PLAIN = ReportedKeys()
"""Keys as they are."""


def require_report_keys(name: str, value: object) -> None:
    """Raise a ValueError for a value that is not allowed; `name` is where it came from.

    >>> require_report_keys("report_keys", "no")
    Traceback (most recent call last):
    ...
    ValueError: report_keys must be one of plain, hashed, hidden; got 'no'
    """
    if value not in REPORT_KEYS:
        raise ValueError(f"{name} must be one of {', '.join(REPORT_KEYS)}; got {value!r}")
