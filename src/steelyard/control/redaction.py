"""Keep secrets out of messages.

An address enters; a text without its user, password and options leaves.
"""

import re
from urllib.parse import unquote

_COLON = re.compile(":|%3a", re.IGNORECASE)


def without_secrets(address: str) -> str:
    """Return an address without its user, password and options.

    Secrets may hold slashes: if anything before the path can be a user and a password, all up to
    the last @ is left out, even if that leaves out part of the path. An address that is not well
    formed, such as one with a slash too few, is treated alike; a path of a local disk is kept.

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
    """Return a message that may quote an address, without the secrets of that address."""
    message = message.replace(address, without_secrets(address))
    for secret in sorted(filter(None, _secrets_of(address)), key=len, reverse=True):
        message = message.replace(secret, "***").replace(unquote(secret), "***")
    return message


def _is_local(address: str) -> bool:
    """Whether an address is a path, which has no place for secrets."""
    return address.startswith(("/", ".", "~")) or not (":" in address or "@" in address)


def _parts(address: str) -> tuple[str, str]:
    """The scheme of an address and the rest, however many slashes are between them."""
    found = re.fullmatch(r"(?s)(?:([A-Za-z][A-Za-z0-9+.-]*):(?=/|[^@]*:[^@]*@))?/*(.*)", address)
    return (found[1] or "", found[2]) if found else ("", address)


def _secrets_of(address: str) -> list[str]:
    """The user, the password and the values of options in an address."""
    if _is_local(address):
        return []
    rest = _parts(address)[1]
    before, at, behind = rest.rpartition("@")
    may_be_user = bool(at) and (bool(_COLON.search(before)) or "/" not in before)
    options = re.split(r"[?&#]", behind if may_be_user else rest)[1:]
    values = [option.partition("=")[2] for option in options]
    return ([*_COLON.split(before), before] if may_be_user else []) + values
