"""Check the host name of a request, as a protection against DNS rebinding.

The headers of a request enter; whether the server answers it leaves.

A website can point its own host name at this machine (DNS rebinding). A browser then treats a
server on this machine as part of that website, and lets the website's pages read it. Such requests
carry the website's name in the `Host` header. So a server answers only requests for the names that
it was started with.
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
"""Addresses that mean: listen on all addresses of the machine."""


@dataclass(frozen=True)
class Hosts:
    """The names and addresses that a server answers to, besides the loopback addresses.

    >>> hosts = Hosts.of("127.0.0.1", names=["dashboard.example"])
    >>> hosts.allow("localhost:5006"), hosts.allow("dashboard.example"), hosts.allow("evil.example")
    (True, True, False)
    """

    names: frozenset[str]
    any_address: bool
    """Whether the server answers to every IP address. No website can claim an IP address."""

    @classmethod
    def of(cls, address: str, names: Iterable[str] = ()) -> Self:
        """Return the hosts of a server that listens on `address` and is also known by `names`."""
        known = {_required_name(name) for name in names}
        if not is_loopback(address):
            known |= {address, socket.gethostname(), socket.getfqdn()} - set(_ANY)
        return cls(frozenset(map(_normalized, known)), address in _ANY)

    def allow(self, host: str | None) -> bool:
        """Return whether the server answers a request with this `Host` header, on any port."""
        name = _host_of(host)
        if name is None:
            return False
        is_known = is_loopback(name) or name in self.names
        return is_known or (self.any_address and _is_address(name))

    def allow_page(self, origin: str | None, host: str | None) -> bool:
        """Return whether a page with this `Origin` header may open a websocket of this `Host`.

        Pages of the server itself may: their origin is the host, port included. The origin may also
        be one of the names that the server was given, because a proxy may send another host.
        Pages of other servers on this machine, which use other ports, may not.
        """
        scheme, _, site = (origin or "").partition("://")
        name = _host_of(site) if scheme in ("http", "https") else None
        if name is None:
            return False
        return name in self.names or (name, _port_of(site)) == (_host_of(host), _port_of(host))


def is_loopback(address: str) -> bool:
    """Return whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _host_of(header: str | None) -> str | None:
    """Return the name or the address in a header; None if it holds neither."""
    found = _HOST.fullmatch((header or "").lower())
    return _normalized(found[1]) if found else None


def _port_of(header: str | None) -> str:
    """Return the port in a header; "" if there is none."""
    found = _HOST.fullmatch((header or "").lower())
    return (found[found.re.groups] or "") if found else ""


def _normalized(name: str) -> str:
    """Return the canonical form of a name or an address."""
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
