"""Keep secrets out of messages.

An address enters; a text without its user, password and options leaves. The same for the values of
settings whose names say that they are secrets.
"""

import re
from collections.abc import Iterable
from urllib.parse import unquote

_COLON = re.compile(":|%3a", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?i)secret|passw|passphrase|token|credential|jaas|(?:access|account|api|private|shared).?key"
)
_ASSIGNED = re.compile(r"""([\w.-]+)\s*=\s*(["'])(.*?)\2""", re.DOTALL)

_kept: set[str] = set()
"""The secrets of this process."""

_SHORTEST = 4
"""Shorter values, such as a number or "on", may stand anywhere in a message."""


def without_secrets(address: str) -> str:
    """Return an address without its user, password and options.

    Secrets may contain slashes. If the text before the path may be a user and a password,
    everything up to the last @ is removed, even if this removes part of the path. Malformed
    addresses, such as one with a missing slash, are treated alike. Paths of a local disk do not
    change.

    >>> without_secrets("s3://me:secret@bucket/control?region=eu")
    's3://bucket/control'
    >>> without_secrets("s3://me:sec/ret@bucket/control")
    's3://bucket/control'
    >>> without_secrets("s3://bucket/by@hour")
    's3://bucket/by@hour'
    >>> without_secrets("s3:/me:secret@bucket/control")
    's3://bucket/control'
    """
    if _is_local(address):
        return address
    scheme, rest = _parts(address)
    rest = re.split(r"[?#]", rest.rpartition("@")[2] if _secrets_of(address) else rest)[0]
    return f"{scheme}://{rest}" if scheme else rest


def redacted(message: str, address: str) -> str:
    """Remove the secrets of an address from a message that may quote it."""
    message = message.replace(address, without_secrets(address))
    for secret in sorted(filter(None, _secrets_of(address)), key=len, reverse=True):
        message = message.replace(secret, "***").replace(unquote(secret), "***")
    return message


def _is_local(address: str) -> bool:
    """Return whether an address is a local path, which cannot contain secrets."""
    return address.startswith(("/", ".", "~")) or not (":" in address or "@" in address)


def _parts(address: str) -> tuple[str, str]:
    """Return the scheme of an address and the rest, with any number of slashes between them."""
    found = re.fullmatch(r"(?s)(?:([A-Za-z][A-Za-z0-9+.-]*):(?=/|[^@]*:[^@]*@))?/*(.*)", address)
    return (found[1] or "", found[2]) if found else ("", address)


def _secrets_of(address: str) -> list[str]:
    """Return the user, the password and the values of options in an address."""
    if _is_local(address):
        return []
    rest = _parts(address)[1]
    before, at, behind = rest.rpartition("@")
    may_be_user = bool(at) and (bool(_COLON.search(before)) or "/" not in before)
    options = re.split(r"[?&#]", behind if may_be_user else rest)[1:]
    values = [option.partition("=")[2] for option in options]
    return ([*_COLON.split(before), before] if may_be_user else []) + values


def is_secret(name: str) -> bool:
    """Whether the name of a setting says that its value is a secret.

    >>> is_secret("spark.hadoop.fs.s3a.secret.key"), is_secret("kafka.security.protocol")
    (True, False)
    """
    return bool(_SECRET_NAME.search(name))


def secret_parts(value: str) -> list[str]:
    r"""Return a secret value, and the secrets in it that a message may repeat alone.

    Very short values and truth values are left out, because they are no secrets.

    >>> secret_parts('ScramLoginModule required username="me" password="swordfish";')[1:]
    ['swordfish']
    >>> secret_parts("false")
    []
    """
    inside = (text for name, _, text in _ASSIGNED.findall(value) if is_secret(name))
    known = (part for part in (value, *inside) if part.lower() not in ("true", "false"))
    return [part for part in known if len(part) >= _SHORTEST]


def keep_secret(texts: Iterable[str]) -> None:
    """Add texts to the secrets of this process, which `without_kept` replaces."""
    _kept.update(texts)


def without_kept(text: str) -> str:
    """Replace the secrets of this process in a text.

    >>> keep_secret(["swordfish"])
    >>> without_kept("the password swordfish is wrong")
    'the password *** is wrong'
    """
    for secret in sorted(_kept, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
