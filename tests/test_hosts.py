"""The hosts that a server answers to."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.hosts import Hosts
from tests.asking import MALFORMED, OTHERS, OURS

LABELS = st.sampled_from(["localhost", "127", "0", "1", "evil", "example", "me", "::1", "xn--a"])
NAMES = st.lists(LABELS, min_size=1, max_size=5).map(".".join) | st.text(max_size=20)
PORTS = st.sampled_from(["", ":80", ":5006", ":", ":x", ":99999999", ":80:80"])
SELF = ("localhost", "[::1]")


@given(NAMES, PORTS)
def test_a_local_server_allows_loopback_names_only(name, port):
    """Every address of the form 127.x.x.x is a loopback address."""
    host = name + port
    is_loopback = name.lower() in SELF or (name.startswith("127.") and _is_address(name))
    if Hosts.of("127.0.0.1").allow(host):
        assert is_loopback, host
        assert port in ("", ":80", ":5006")
    elif port in ("", ":80", ":5006"):
        assert not is_loopback, host


def _is_address(text):
    try:
        socket.inet_pton(socket.AF_INET, text)
    except (OSError, ValueError):
        return False
    return True


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "0.0.0.0"])  # noqa: S104
@pytest.mark.parametrize("host", OURS)
def test_loopback_names_are_allowed_on_every_address(address, host):
    host = host.format(port=5006)
    assert Hosts.of(address).allow(host)
    assert Hosts.of(address).allow_page(f"http://{host}", host)


def test_pages_of_other_servers_on_this_machine_are_not_allowed():
    """Another port is another website, although the host name is the same."""
    hosts = Hosts.of("127.0.0.1")
    assert hosts.allow_page("http://localhost:5006", "localhost:5006")
    for origin in ("http://localhost:9999", "http://127.0.0.1:1234", "http://localhost"):
        assert not hosts.allow_page(origin, "localhost:5006")


@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
def test_unknown_and_malformed_hosts_are_not_allowed(host):
    """They are allowed neither as hosts nor as origins of pages."""
    hosts = Hosts.of("127.0.0.1", ["me"])
    host = host and host.format(port=5006)
    assert not hosts.allow(host)
    assert not hosts.allow_page(f"http://{host}", "localhost")


def test_a_server_on_all_addresses_answers_to_every_address_and_its_names():
    """A website cannot claim an IP address. A page must have the same address as the server."""
    for address in ("0.0.0.0", "::", ""):  # noqa: S104
        hosts = Hosts.of(address, ["Me.Example"])
        for host in ("192.0.2.1:5006", "[2001:DB8::1]", socket.gethostname(), "me.example:80"):
            assert hosts.allow(host)
            assert hosts.allow_page(f"https://{host}", host)
        assert not hosts.allow("evil.example")
        assert not hosts.allow_page("http://192.0.2.7", "192.0.2.1")
        assert not hosts.allow_page("http://evil.example", "192.0.2.1")
        assert hosts.allow_page("http://me.example", "192.0.2.1")


def test_a_server_on_one_address_answers_to_that_address():
    """It accepts every form of the address, and the names of the machine."""
    hosts = Hosts.of("2001:db8::1")
    assert hosts.allow("[2001:0DB8:0:0::1]:5006")
    assert hosts.allow(socket.gethostname())
    assert not hosts.allow("[2001:db8::2]:5006")


@pytest.mark.parametrize("name", ["", "me:80", "http://me", "me/", "*", "-", "me "])
def test_invalid_host_names_are_rejected(name):
    with pytest.raises(ValueError, match="name must be a host name without a port, such as"):
        Hosts.of("127.0.0.1", [name])
