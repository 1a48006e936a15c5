"""The server of the page, and the commands that start it."""

import os
import re
import signal
import socket
import subprocess
import sys
from http import HTTPStatus
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from steelyard.cli import app
from steelyard.dashboard.runs import Finished, ShownRun
from steelyard.dashboard.server import DashboardServer
from steelyard.hosts import REFUSAL
from tests.asking import MALFORMED, OTHERS, OURS, ask
from tests.dashboard.model import NASTY, slot
from tests.waiting import PATIENCE

RUN = ShownRun(NASTY, Finished([slot(1, [1, 1])]))


@pytest.fixture
def server():
    """Start a server on a free port."""
    with DashboardServer([RUN]) as serving:
        yield serving


def test_the_page_loads_nothing_from_other_machines(server):
    """It has no other address, its scripts are served, and names are text."""
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


def token_in(page):
    """Return the token with which a page opens the websocket of its session."""
    return re.search(r'"token":"([^"]+)"', page)[1]


class Asked:
    """A server that tests send requests to, and the token and a script of its page."""

    def __init__(self, server):
        self.port = server.port
        page = self.get("/", "localhost").body.decode()
        self.token = token_in(page)
        self.static = re.search(r'<script[^>]* src="([^"]+)"', page)[1]

    def get(self, path, host, **headers):
        return ask(self.port, path, host, **headers)

    def upgrade(
        self, host="localhost:{port}", origin="http://localhost:{port}", token=None, **more
    ):
        """Open a websocket with the token of a page; None leaves a header out."""
        headers = {} if origin is None else {"Origin": origin.format(port=self.port)}
        return self.get(
            "/ws",
            host,
            **headers,
            **more,
            Connection="Upgrade",
            Upgrade="websocket",
            Sec_WebSocket_Version="13",
            Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==",
            Sec_WebSocket_Protocol=f"bokeh, {token or self.token}",
        )


@pytest.fixture(scope="module")
def asked():
    """Start a server for this machine only."""
    with DashboardServer([RUN]) as serving:
        yield Asked(serving)


@pytest.fixture(scope="module")
def public():
    """Start a public server with several host names."""
    names = ["me", "Me.Example", "192.0.2.1"]
    with DashboardServer([RUN], public=True, names=names) as serving:
        yield Asked(serving)


OTHER_PAGE = "Only a page of this server can open its websocket.\n"
AUTOLOAD = "/autoload.js?bokeh-autoload-element=x"


def assert_refused(answer, sentence, *, is_malformed=False):
    """Check that the answer is one sentence, or Tornado's refusal of a malformed request."""
    if is_malformed and answer.status == HTTPStatus.BAD_REQUEST:
        assert b"" == answer.body
        return
    assert HTTPStatus.FORBIDDEN == answer.status
    assert sentence == answer.body.decode()
    assert "text/plain; charset=utf-8" == answer.headers["Content-Type"].lower()


@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
@pytest.mark.parametrize("path", ["/", "static", AUTOLOAD, "/metadata", "/nowhere"])
def test_nothing_is_served_to_another_host(asked, path, host):
    """With DNS rebinding, pages of another site send requests with that site's name."""
    answer = asked.get(asked.static if path == "static" else path, host)
    assert_refused(answer, REFUSAL, is_malformed=host in MALFORMED)


@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
def test_no_websocket_is_opened_for_another_host(asked, host):
    """A matching origin or a valid token does not help."""
    origins = ["http://localhost:{port}", f"http://{(host or 'evil.example').split(',')[0]}"]
    for origin in origins:
        answer = asked.upgrade(host, origin)
        assert_refused(answer, REFUSAL, is_malformed=host in MALFORMED)


@pytest.mark.parametrize("host", OURS)
def test_the_page_is_served_to_this_machine(asked, host):
    """Any name of this machine is accepted, and any port of a tunnel."""
    page = asked.get("/", host)
    assert HTTPStatus.OK == page.status
    assert HTTPStatus.OK == asked.get(asked.static, host).status
    opened = asked.upgrade(host, f"http://{host.lower()}", token_in(page.body.decode()))
    assert HTTPStatus.SWITCHING_PROTOCOLS == opened.status


def test_an_old_client_without_a_host_is_refused(asked):
    """HTTP/1.0 allows a request without a host, but every browser sends one."""
    assert_refused(asked.get("/", None, version="1.0"), REFUSAL)


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}"])
@pytest.mark.parametrize(
    ("origin", "is_ours"),
    [
        ("http://{host}", True),
        ("https://{host}", True),
        ("http://localhost:8888", False),
        ("http://127.0.0.1", False),
        ("https://[::1]", False),
        ("http://evil.example", False),
        ("http://evil.example:{port}", False),
        ("http://localhost:{port}@evil.example", False),
        ("http://192.0.2.1:{port}", False),
        ("localhost:{port}", False),
        ("file://localhost", False),
        ("http://[localhost", False),
        ("null", False),
        ("", False),
        (None, False),
    ],
)
def test_other_sites_cannot_open_the_websocket(asked, host, origin, is_ours):
    """Neither can pages of other servers on this machine."""
    page = origin and origin.replace("{host}", host)
    answer = asked.upgrade(host, page)
    if is_ours:
        assert HTTPStatus.SWITCHING_PROTOCOLS == answer.status
    else:
        assert_refused(answer, OTHER_PAGE)


def test_the_other_end_of_a_tunnel_can_read(asked):
    """The browser and the page both use the port of the tunnel."""
    answer = asked.upgrade("localhost:8888", "http://localhost:8888")
    assert HTTPStatus.SWITCHING_PROTOCOLS == answer.status


def test_a_page_that_claims_to_be_of_the_same_site_is_refused(asked):
    """Tornado trusts a header that any client can send."""
    answer = asked.upgrade(origin="http://evil.example", Sec_Fetch_Site="same-origin")
    assert_refused(answer, OTHER_PAGE)


def test_answers_have_security_headers(asked):
    """They forbid frames, content sniffing and use by other sites."""
    for path in ("/", asked.static, "/nowhere"):
        headers = asked.get(path, "localhost", Origin="http://evil.example").headers
        assert "frame-ancestors 'none'" == headers["Content-Security-Policy"]
        assert "DENY" == headers["X-Frame-Options"]
        assert "nosniff" == headers["X-Content-Type-Options"]
        assert headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize("path", [AUTOLOAD, "/metadata", "/favicon.ico", "/nowhere", "/static"])
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_nothing_else_is_served(asked, path, method):
    """In particular, no script embeds the page into another site."""
    answer = asked.get(path, "localhost", method=method, Origin="http://evil.example")
    assert HTTPStatus.NOT_FOUND == answer.status
    assert "There is no such page.\n" == answer.body.decode()
    assert answer.headers["Access-Control-Allow-Origin"] is None


def test_refused_requests_are_not_printed(asked, capfd):
    """The terminal may show a table."""
    asked.get("/?\x1b[31m", "evil.example")
    asked.get("/", None)
    asked.get("/nowhere", "localhost")
    asked.upgrade(origin="http://evil.example")
    assert ("", "") == capfd.readouterr()


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("me:{port}", "http://me:{port}"),
        ("me", "https://me"),
        ("127.0.0.1:{port}", "https://me.example"),
        ("192.0.2.1:{port}", "http://192.0.2.1:{port}"),
        ("localhost:{port}", "http://localhost:{port}"),
    ],
)
def test_a_public_page_is_served_under_its_names_only(public, host, origin):
    assert HTTPStatus.OK == public.get(public.static, host).status
    assert HTTPStatus.SWITCHING_PROTOCOLS == public.upgrade(host, origin).status
    assert_refused(public.get(public.static, "you:{port}"), REFUSAL)
    assert_refused(public.upgrade(host, "http://you:{port}"), OTHER_PAGE)
    assert_refused(public.upgrade(host, "http://192.0.2.7"), OTHER_PAGE)


def test_a_closed_server_frees_its_port():
    """Closing it twice is allowed."""
    server = DashboardServer([RUN])
    server.close()
    server.close()
    with socket.create_server(("127.0.0.1", server.port)):
        pass
    with DashboardServer([RUN], server.port) as again:
        assert again.port == server.port


def test_bad_addresses_and_ports_are_refused():
    """Other machines can reach the page only if the user allows it."""
    with pytest.raises(ValueError, match=r"may reach '192.0.2.1'.* pass --public"):
        DashboardServer([RUN], address="192.0.2.1")
    with pytest.raises(ValueError, match="port must be a whole number, from 0 to 65,535"):
        DashboardServer([RUN], port=70_000)
    with (
        DashboardServer([RUN]) as server,
        pytest.raises(ValueError, match=f"cannot listen on 127.0.0.1:{server.port}: Address"),
    ):
        DashboardServer([RUN], server.port)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--control", "a", "--replay", "b"], "pass either --control or --replay, not both"),
        (["--replay", "nowhere"], "nowhere/history.jsonl does not exist; name a history.jsonl"),
        (["--control", "ftp://x"], "must be a folder on a local disk or a shared mount"),
        (["--control", "x", "--address", "192.0.2.1"], "other machines may reach '192.0.2.1'"),
        (["--control", "x", "--port", "-1"], "port must be a whole number"),
        (["--control", "x", "--name", "me:80"], "name must be a host name without a port"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_served(arguments, sentence, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    failed = CliRunner().invoke(app, ["dashboard", *arguments])
    assert failed.exit_code == 2, failed.output
    assert sentence in failed.output


@pytest.mark.parametrize(
    "command",
    [["dashboard"], ["demo", "--ui"], ["simulate", "--ui"], ["stream", "--key=x", "--ui"]],
)
def test_missing_bokeh_is_reported_before_spark_starts(command, monkeypatch):
    """The sentence has the command that installs it."""
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
        raise AssertionError("it printed no address")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        printed, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, printed

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
    """Ctrl-C ends them without an error."""
    history = tmp_path / "history.jsonl"
    history.write_text(slot(1, [1, 1]).to_json() + "\n")
    with Command(*(a.format(history=history) for a in arguments)) as command:
        with urlopen(f"http://127.0.0.1:{command.port()}/") as answer:
            assert "Steelyard" in answer.read().decode()
        assert (0, "Stopping\n") == command.interrupt()
