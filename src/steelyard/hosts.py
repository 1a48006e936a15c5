"""The hosts that a server answers to: headers of a request enter; whether it is refused leaves.

A site can let its own name lead to this machine (DNS rebinding). A browser then takes a server here
for a part of that site, and lets the site's pages read it. Such requests carry the site's name as
their host, so a server answers only to names that it was started for.
"""

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

REFUSAL = "This server was not started for the host name of this request.\n"
"""The answer to a request for another host, with status 403."""

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?", re.ASCII)
_HOST = re.compile(rf"({_NAME.pattern}|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?", re.ASCII)
_ANY = ("", "0.0.0.0", "::")  # noqa: S104
"""Addresses that stand for all addresses of a machine."""


@dataclass(frozen=True)
class Hosts:
    """The names and addresses of a server, besides those of this machine alone.

    >>> hosts = Hosts.of("127.0.0.1", names=["dashboard.example"])
    >>> hosts.allow("localhost:5006"), hosts.allow("dashboard.example"), hosts.allow("evil.example")
    (True, True, False)
    """

    names: frozenset[str]
    any_address: bool
    """Whether every address is one of the server's: no site can make an address its own."""

    @classmethod
    def of(cls, address: str, names: Iterable[str] = ()) -> Self:
        """The hosts of a server that listens on this address, and has these names as well."""
        known = {_required_name(name) for name in names}
        if not is_loopback(address):
            known |= {address, socket.gethostname(), socket.getfqdn()} - set(_ANY)
        return cls(frozenset(map(_normalized, known)), address in _ANY)

    def allow(self, host: str | None) -> bool:
        """Whether a request for this host, a `Host` header, is answered; the port may be any."""
        name = _host_of(host)
        if name is None:
            return False
        is_known = is_loopback(name) or name in self.names
        return is_known or (self.any_address and _is_address(name))

    def allow_page(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of this origin, an `Origin` header, may open a websocket of this host.

        A page of the server may: its origin is the host, port included, or one of the names that
        the server was given, as a proxy may ask by another one. Pages of other servers of this
        machine, on other ports, may not.
        """
        scheme, _, site = (origin or "").partition("://")
        name = _host_of(site) if scheme in ("http", "https") else None
        if name is None:
            return False
        return name in self.names or (name, _port_of(site)) == (_host_of(host), _port_of(host))


def is_loopback(address: str) -> bool:
    """Whether an address is this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _host_of(header: str | None) -> str | None:
    """The name or the address in a header; None where it is neither."""
    found = _HOST.fullmatch((header or "").lower())
    return _normalized(found[1]) if found else None


def _port_of(header: str | None) -> str:
    """The port in a header; "" where there is none."""
    found = _HOST.fullmatch((header or "").lower())
    return (found[found.re.groups] or "") if found else ""


def _normalized(name: str) -> str:
    """The one form of a name or of an address, which have several."""
    bare = name.lower().removeprefix("[").removesuffix("]")
    return str(ipaddress.ip_address(bare)) if _is_address(bare) else bare


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _required_name(name: str) -> str:
    if not (_NAME.fullmatch(name.lower()) or _is_address(name.strip("[]"))):
        raise ValueError(
            f"name must be a host name without a port, such as dashboard.example, got {name!r}"
        )
    return name
