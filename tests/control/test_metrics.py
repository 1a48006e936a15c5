"""The Prometheus metrics of a stream, and the requests that the server answers."""

import socket
from http import HTTPStatus
from urllib.request import urlopen

import pytest

from steelyard.control.prometheus import MetricsServer
from steelyard.hosts import REFUSAL
from tests.asking import MALFORMED, OTHERS, OURS, ask
from tests.control.model import ROWS, Model, controller


@pytest.fixture(scope="module")
def port():
    """The port of a local server that has one more name."""
    with MetricsServer(list, port=0, names=["metrics.example"]) as server:
        yield server.port


@pytest.mark.parametrize("host", [*OURS, "metrics.example:9100"])
def test_requests_for_known_hosts_are_answered(port, host):
    """The known hosts are the loopback names and the given names."""
    answer = ask(port, "/metrics", host)
    assert HTTPStatus.OK == answer.status
    assert b"steelyard_slots_total 0.0" in answer.body


@pytest.mark.parametrize("path", ["/metrics", "/"])
@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
def test_requests_for_other_hosts_are_refused(port, path, host):
    """A website can point its name at this machine; its pages then send that name as the host."""
    answer = ask(port, path, host)
    assert HTTPStatus.FORBIDDEN == answer.status
    assert REFUSAL == answer.body.decode()
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_a_refused_request_is_not_logged(port, capfd):
    """The terminal may show a table, so the server prints nothing."""
    ask(port, "/\x1b[31m", "evil.example")
    assert ("", "") == capfd.readouterr()


def test_unusable_ports_are_rejected():
    """A port outside the valid range, and a port that is in use."""
    with pytest.raises(ValueError, match="port must be a whole number, from 0 to 65,535, got -1"):
        MetricsServer(list, port=-1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1:{used}: Address"):
            MetricsServer(list, port=used)


def test_the_port_of_a_closed_server_can_be_used_again():
    with MetricsServer(list, port=0) as server:
        assert HTTPStatus.OK == ask(server.port, "/metrics", "localhost").status
    with MetricsServer(list, port=server.port) as again:
        assert again.port == server.port


def test_the_metrics_are_those_of_the_newest_slot():
    loop = controller(2)
    Model([1, 0.5], loop).run(2)
    with (
        MetricsServer(lambda: loop.history, port=0) as server,
        urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer,
    ):
        text = answer.read().decode()
    assert f"steelyard_messages_total {2 * ROWS:.1f}" in text
    assert 'steelyard_worker_state{state="busy",worker="1"}' in text
    assert 'steelyard_latency_seconds{quantile="0.99",worker="0"}' in text
    busy = loop.history[-1].workers[0].utilization
    assert f'steelyard_worker_utilization{{worker="0"}} {busy}' in text
