"""Keep secrets out of messages.

An address enters; a text without its user, password and options leaves.
"""

import re
from urllib.parse import unquote


def without_secrets(address: str) -> str:
    """Return an address without its user, password and options.

    Secrets may hold slashes: if anything before the path can be a user and a password, all up to
    the last @ is left out, even if that leaves out part of the path.

    >>> without_secrets("s3://me:secret@bucket/control?region=eu")
    's3://bucket/control'
    >>> without_secrets("s3://me:sec/ret@bucket/control")
    's3://bucket/control'
    >>> without_secrets("s3://bucket/by@hour")
    's3://bucket/by@hour'
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    rest = re.split(r"[?#]", rest.rpartition("@")[2] if _secrets_of(address) else rest)[0]
    return f"{scheme}://{rest}"


def _secrets_of(address: str) -> list[str]:
    """The user, the password and the values of options in an address."""
    rest = address.partition("://")[2]
    before, at, behind = rest.rpartition("@")
    may_be_user = bool(at) and (":" in before or "/" not in before)
    options = re.split(r"[?&#]", behind if may_be_user else rest)[1:]
    values = [option.partition("=")[2] for option in options]
    return ([*before.split(":"), before] if may_be_user else []) + values


def redacted(message: str, address: str) -> str:
    """Return a message that may quote an address, without the secrets of that address."""
    message = message.replace(address, without_secrets(address))
    for secret in sorted(filter(None, _secrets_of(address)), key=len, reverse=True):
        message = message.replace(secret, "***").replace(unquote(secret), "***")
    return message
