"""The page on this machine's network, and the command that serves it."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dashboard.runs import Finished, Run
from steelyard.dashboard.server import DashboardServer
from tests.dashboard.model import NASTY, slot
from tests.waiting import PATIENCE

RUN = Run(NASTY, Finished([slot(1, [1, 1])]))


@pytest.fixture
def server():
    """On a free port."""
    with DashboardServer([RUN]) as serving:
        yield serving


def test_the_page_comes_from_this_machine_alone(server):
    """No other address is in it, its scripts are served, and names are text."""
    with urlopen(f"http://127.0.0.1:{server.port}/") as answer:
        page = answer.read().decode()
    assert "&lt;script&gt;document" in page
    assert "<script>document" not in page
    sources = re.findall(r'<script[^>]* src="([^"]+)"', page)
    assert sources
    assert all(source.startswith("/static/") for source in sources)
    assert "https://" not in page
    with urlopen(f"http://127.0.0.1:{server.port}{sources[0]}") as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("origin", "answer"),
    [
        ("http://127.0.0.1:{port}", HTTPStatus.SWITCHING_PROTOCOLS),
        ("http://localhost:8888", HTTPStatus.SWITCHING_PROTOCOLS),
        ("http://evil.example", HTTPStatus.FORBIDDEN),
        ("http://evil.example:{port}", HTTPStatus.FORBIDDEN),
    ],
)
def test_other_sites_cannot_read_along(server, origin, answer):
    """A tunnel's other end can: it is this machine, at any port."""
    with urlopen(f"http://127.0.0.1:{server.port}/") as page:
        token = re.search(r'"token":"([^"]+)"', page.read().decode())[1]
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": f"bokeh, {token}",
        "Origin": origin.format(port=server.port),
    }
    with closing(HTTPConnection("127.0.0.1", server.port)) as connection:
        connection.request("GET", "/ws", headers=headers)
        assert answer == connection.getresponse().status


def test_a_server_that_is_closed_is_gone():
    """Its port can be used again, and closing twice does no harm."""
    server = DashboardServer([RUN])
    server.close()
    server.close()
    with socket.create_server(("127.0.0.1", server.port)):
        pass
    with DashboardServer([RUN], server.port) as again:
        assert again.port == server.port


def test_addresses_and_ports_that_cannot_be_used():
    """Others see the page only if that was asked for."""
    with pytest.raises(ValueError, match=r"'192.0.2.1' is not this machine alone.* say public"):
        DashboardServer([RUN], address="192.0.2.1")
    with pytest.raises(ValueError, match="port must be a whole number, from 0 to 65,535"):
        DashboardServer([RUN], port=70_000)
    with DashboardServer([RUN]) as server:
        with pytest.raises(ValueError, match=f"127.0.0.1:{server.port} cannot be used: Address"):
            DashboardServer([RUN], server.port)
        with DashboardServer([RUN], address="127.0.0.1", public=True, names=["me"]) as public:
            assert f"me:{public.port}" in public._origins()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--control", "a", "--replay", "b"], "control and replay exclude each other"),
        (["--replay", "nowhere"], "nowhere/history.jsonl is not there; give a history.jsonl"),
        (["--control", "ftp://x"], "must be a folder on a local disk or a shared mount"),
        (["--control", "x", "--address", "192.0.2.1"], "is not this machine alone"),
        (["--control", "x", "--port", "-1"], "port must be a whole number"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, sentence, monkeypatch):
    """Before anything is served."""
    monkeypatch.setenv("COLUMNS", "300")
    failed = CliRunner().invoke(app, ["dashboard", *arguments])
    assert failed.exit_code == 2, failed.output
    assert sentence in failed.output


@pytest.mark.parametrize(
    "command",
    [["dashboard"], ["demo", "--ui"], ["simulate", "--ui"], ["stream", "--key=x", "--ui"]],
)
def test_without_bokeh_there_is_a_sentence(command, monkeypatch):
    """With the command that installs it, before Spark starts."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    failed = CliRunner().invoke(app, command)
    assert failed.exit_code == 2, failed.output
    assert "needs bokeh: install it with 'pip install \".[dashboard]\"' in a clone" in failed.output


class Command:
    """A command that serves the page until it is interrupted."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.cli", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200"},
        )

    def port(self):
        for line in self.process.stdout:
            found = re.search(r"The page is http://127.0.0.1:(\d+)/", line)
            if found:
                return found[1]
        raise AssertionError("it tells no address")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        told, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, told

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["dashboard", "--replay", "{history}", "--port", "0"],
        ["simulate", "--fraction", "0.001", "--ui"],
    ],
    ids=["replay", "simulate"],
)
def test_commands_serve_until_they_are_interrupted(arguments, tmp_path):
    """Ctrl-C is a clean end."""
    history = tmp_path / "history.jsonl"
    history.write_text(slot(1, [1, 1]).to_json() + "\n")
    with Command(*(a.format(history=history) for a in arguments)) as command:
        with urlopen(f"http://127.0.0.1:{command.port()}/") as answer:
            assert "Steelyard" in answer.read().decode()
        assert (0, "Stopping\n") == command.interrupt()
