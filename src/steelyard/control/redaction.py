"""Keep secrets out of messages.

An address enters; a text without its user, password and options leaves.
"""

import re
from urllib.parse import unquote

_COLON = re.compile(":|%3a", re.IGNORECASE)


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
